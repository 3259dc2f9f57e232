"""Demos · Learn: twenty-four exercises that answer back, for a folder of your own."""

NAMES = {  # of the exercises, by group and in their order
    "by hand": "e01_slope e02_product e03_chain e04_two_uses e05_order e06_bug",
    "rules": "e07_exp e08_sum e09_unbroadcast e10_matmul e11_pick e12_double",
    "many to one": "e13_softmax e14_cross_entropy e15_layer_norm e16_pencil e17_predict e18_bug",
    "attention": "e19_attention e20_mask e21_heads e22_backward e23_optimizer e24_reverse",
}
GROUPS = {group: tuple(names.split()) for group, names in NAMES.items()}
EXERCISES = tuple(name for names in GROUPS.values() for name in names)
# For a first contact, up to how backpropagation through attention works:
SHORT = (
    "e02_product e04_two_uses e06_bug e10_matmul e13_softmax e19_attention e16_pencil e22_backward"
)
PATH = tuple(SHORT.split())
