"""Demos · Pretrained: models that other people have trained, loaded, checked and changed."""
