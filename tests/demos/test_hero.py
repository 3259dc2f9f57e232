"""The first picture, attention in a plane: what it computes and says, its motion, its stills."""

import json
import re
from xml.etree import ElementTree

import numpy as np
import pytest

from attention import attention_backward
from demos.pages.page import Page
from demos.pages.templates import parts
from demos.pictures import forces
from demos.site._document import copy_beside, document
from tests.demos.running import ROOT

STAR, GO, SAYS = "[data-part=move-star]", "#forces .go", "#forces .says"
SCENES = {"first": forces.FIRST, "chapter_11": forces.CHAPTER_11}
SETTINGS = [("first", c) for c in (2**-0.5, 1.0, 4.0, 16.0)] + [("chapter_11", c) for c in (0.5, 2)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hero")
    copy_beside(folder)
    forces.save_stills(folder)
    for name, scene in SCENES.items():
        figure = forces.figure(scene, "16.html") + parts.script("pictures/forces.js")
        page = Page(f"{name}.html", name, [parts.top("", "Hero", ""), figure], name)
        (folder / page.file).write_text(document(page, ""), "utf-8")
    return folder


class Hero:
    """The figure on a page that is open."""

    def __init__(self, page):
        self.page = page

    @property
    def found(self):
        return json.loads(self.page.get_attribute("#forces", "data-found"))

    @property
    def scene(self):
        """Return the scene as a reader has moved it."""
        return forces.FIRST._replace(**{x: self.found[x] for x in ("q", "k", "v", "star", "g")})

    @property
    def said(self):
        return self.page.text_content(SAYS)

    def middle(self, name):
        box = self.page.locator(f"[data-part=move-{name}]").bounding_box()
        return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2

    def drag(self, name, x, y):
        self.page.mouse.move(*self.middle(name))
        self.page.mouse.down()
        self.page.mouse.move(x, y)
        self.page.mouse.up()


@pytest.fixture
def hero(look, folder):
    """hero(name, scale, **options): the picture of a scene."""

    def hero(name="first", scale=None, **options):
        page = look(folder / f"{name}.html", **options)
        if scale:
            page.locator("#forces input").fill(str(float(np.log2(scale))))
        return Hero(page)

    return hero


def close(found, engine):
    """Assert that both agree to 1e-12."""
    for name in ("p", "o", "L"):
        np.testing.assert_allclose(found[name], engine[name], rtol=1e-12, atol=1e-12)
    for name, pull in engine["pulls"].items():
        np.testing.assert_allclose(found["pulls"][name], pull, rtol=1e-12, atol=1e-12)


def attributes(page):
    """Return what the page draws, as `forces.drawn` says it."""
    code = """() => [...document.querySelectorAll("#forces [data-part]")].map((e) => {
      const pairs = [...e.attributes].map((a) => [a.name, a.value]);
      return [e.dataset.part, [["text", e.textContent], ...pairs]];
    })"""
    return {name: dict(pairs) for name, pairs in page.evaluate(code)}


def drawn_alike(page, scene, scale):
    """Assert that each part is where Python says, to a tenth of a pixel."""
    numbers = re.compile(r"-?\d+\.\d+")
    parts_there = attributes(page)
    for name, expected in forces.drawn(scene, forces.passes(scene, scale)).items():
        for key, value in expected.items() if name in parts_there else ():
            there = parts_there[name][key]
            assert numbers.sub("", there) == numbers.sub("", value), (name, key)
            apart = np.subtract(*(list(map(float, numbers.findall(x))) for x in (there, value)))
            assert np.abs(apart).max(initial=0) < 0.11, (name, key, there, value)


# ------------------------------------------------------------------ value


@pytest.mark.parametrize(("name", "scale"), SETTINGS)
def test_the_script_computes_and_draws_what_the_engine_computes(hero, name, scale):
    shown, scene = hero(name, scale), SCENES[name]
    close(shown.found, forces.passes(scene, scale))
    drawn_alike(shown.page, scene, scale)


def test_the_still_is_what_the_script_draws_first(hero, folder):
    still = ElementTree.fromstring(forces.still("forces"))
    there = {e.get("data-part"): e.attrib for e in still.iter() if e.get("data-part")}
    parts_there = attributes(hero().page)
    assert there.keys() == parts_there.keys()
    for name, attrib in there.items():
        assert {**attrib}.items() <= {**parts_there[name]}.items(), name


def test_chapter_11_has_its_own_numbers():
    pulls = forces.passes(forces.CHAPTER_11, 0.5)["pulls"]
    rows = np.array(forces.way_back.Q[:1]), forces.way_back.K, forces.way_back.V
    dq, dk, dv = attention_backward(*rows, forces.way_back.G[:1], scale=0.5)
    assert not dq[:, 2:].any() and not dk[:, 2:].any()  # the others are 0
    np.testing.assert_allclose(pulls["q"], -dq[0, :2], rtol=1e-12)
    np.testing.assert_allclose(pulls["k"], -dk[:, :2], rtol=1e-12)
    np.testing.assert_allclose(pulls["v"], -dv, rtol=1e-12)


# ------------------------------------------------------------------ law


def test_the_pull_on_q_is_the_sum_of_arrows_along_the_keys(hero):
    for scale in (0.25, 1.0, 2.0):
        found = hero("first", scale).found
        arrows = scale * np.array(found["pulls"]["z"])[:, None] * np.array(found["k"])
        np.testing.assert_allclose(arrows.sum(axis=0), found["pulls"]["q"], rtol=1e-9)
    said = hero().said
    assert said.startswith("The pull on q is a sum: along k₂ and k₃, ")
    assert "toward" not in said and said.endswith(" and against k₁.")


def test_at_16_the_output_feels_its_pull_and_nothing_gets_back_to_q_and_the_keys(hero):
    shown = hero(reduced_motion="reduce")
    assert np.linalg.norm(shown.found["pulls"]["q"]) > 1
    shown.page.click("[data-scale='4']")
    pulls = shown.found["pulls"]
    assert np.linalg.norm(pulls["o"]) > 1 and np.abs(pulls["q"] + pulls["k"][0]).max() < 1e-9
    assert shown.said.startswith("One weight is 1.00. The output is still pulled")
    before = shown.scene
    shown.page.click(GO)
    np.testing.assert_allclose(shown.scene.q, before.q, atol=1e-9)
    shown.page.click("#forces .again")
    assert shown.found["scale"] == pytest.approx(2**-0.5)


def test_following_the_pull_is_gradient_descent_to_the_star(hero):
    """(With reduced motion there is nothing between the start and the end.)"""
    shown, scene = hero(reduced_motion="reduce"), forces.FIRST
    shown.page.click(GO)
    assert shown.page.text_content(GO) == "Follow the pull"
    while (found := forces.passes(scene, scene.scale))["L"] > 1e-4:
        pulls = found["pulls"]
        q, k = (np.add(x, 0.06 * pulls[name]) for x, name in ((scene.q, "q"), (scene.k, "k")))
        scene = scene._replace(q=q, k=k)
    np.testing.assert_allclose(shown.scene.q, scene.q, rtol=1e-9)
    np.testing.assert_allclose(shown.scene.k, scene.k, rtol=1e-9)
    assert shown.scene.v == [list(v) for v in forces.FIRST.v]
    assert shown.said == "The output is at the star. Nothing pulls."


def test_the_pull_is_followed_before_the_readers_eyes_until_it_is_stopped(hero):
    shown = hero()
    shown.page.click(GO)
    while shown.scene.q == list(forces.FIRST.q):
        shown.page.wait_for_timeout(20)
    assert shown.said == "q and the keys follow their pulls, and the values stay."
    assert shown.page.text_content(GO) == "Stop"
    shown.page.click(GO)
    assert shown.page.text_content(GO) == "Follow the pull" and shown.found["L"] > 1e-3
    shown.page.click("#forces .again")
    assert shown.scene.q == list(forces.FIRST.q)


def test_a_star_outside_is_never_reached_and_it_says_so_and_stops(hero):
    shown = hero(reduced_motion="reduce")
    x, y = shown.middle("star")
    shown.drag("star", x + 150, y - 60)
    assert shown.said == "The star is outside of the shaded area: no mixture reaches it."
    shown.page.click(GO)
    assert shown.found["L"] > 0.3 and "no mixture reaches it" in shown.said
    close(shown.found, forces.passes(shown.scene, 2**-0.5))


# ------------------------------------------------------------------ every place


def test_points_on_top_of_each_other_a_q_of_0_and_far_points_are_drawn_without_a_fault(hero):
    shown = hero()
    page = shown.page

    def sound():
        found = shown.found
        close(found, forces.passes(shown.scene, found["scale"]))
        text = json.dumps(attributes(page))
        assert not re.findall(r".{40}(?:NaN|Infinity)", text)
        drawn_alike(page, shown.scene, found["scale"])
        return page.evaluate(TOUCHING)

    for name, other in (("k1", "k0"), ("q", "k0"), ("k2", "k0"), ("v1", "v0"), ("star", "v0")):
        shown.drag(name, *shown.middle(other))
        assert sound() == []
    shown.drag("v2", *shown.middle("v0"))  # all values are one
    assert sound() == []
    page.click("#forces .again")
    page.focus("[data-part=move-q]")
    for key in ["ArrowLeft"] * 11 + ["ArrowDown"] * 3:
        page.keyboard.press(key)
    assert np.abs(shown.found["q"]).max() < 1e-12 and np.ptp(shown.found["p"]) < 1e-12
    sound()
    for name in ("q", "k0", "k1", "k2", "v0", "v1", "v2", "star"):
        for far in ((0, 0), (5000, 5000)):
            shown.drag(name, *far)
            sound()


TOUCHING = """() => {
  const box = (e) => e.getBoundingClientRect();
  const names = [...document.querySelectorAll('[data-part^=name-]')];
  return names.flatMap((a, i) => names.slice(i + 1).filter((b) => {
    const [p, q] = [box(a), box(b)], wide = Math.min(p.right, q.right) - Math.max(p.left, q.left);
    return wide > 2 && Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top) > 8;
  }).map((b) => [a.textContent, b.textContent]));
}"""


def test_a_pull_that_would_leave_its_plane_ends_at_the_edge_with_a_second_head():
    short, long = forces.arrow((100, 100), (50, 0)), forces.arrow((100, 100), (900, 0))
    assert short["d"].count("Z") == 1 and long["d"].count("Z") == 2
    right = max(float(x) for x in re.findall(r"([\d.]+),", long["d"]))
    assert right == forces.PLANE[0] - forces.ROOM


def test_every_point_is_moved_by_the_keyboard_and_the_focus_is_seen(hero):
    shown = hero()
    rings = shown.page.locator("#forces [tabindex]").all()
    assert len(rings) == 8
    for ring in rings:
        before = shown.found
        ring.press("ArrowUp")
        assert shown.found != before
        assert ring.evaluate("e => getComputedStyle(e).strokeWidth") == "3px"


def test_it_has_at_most_twelve_pieces_of_text(hero):
    """(Names of points and numbers on bars are not counted: they have no word.)"""
    code = """() => [...document.querySelectorAll(
      '#forces :is(p, text, label, button, figcaption)')].filter((e) => e.checkVisibility())
      .map((e) => e.textContent)"""
    for name in SCENES:
        texts = hero(name).page.evaluate(code)
        pieces = [text for text in texts if re.search(r"[^\W\d_]{2}|^16$", text)]
        assert len(pieces) <= 12, pieces
    caption = hero().page.locator("#forces figcaption")
    assert "Three keys, two dimensions: for many keys see" in caption.inner_text()
    assert caption.locator("a").get_attribute("href") == "16.html"


@pytest.mark.parametrize("name", SCENES)
def test_it_fits_every_width_and_axe_finds_nothing(hero, findings, name):
    for width in (320, 390, 700, 1280):
        page = hero(name, width=width).page
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        sizes = page.evaluate("""() => [...document.querySelectorAll('#forces svg text')].map((e) =>
          parseFloat(getComputedStyle(e).fontSize) * e.getScreenCTM().a)""")
        assert min(sizes) >= 8, width
    for scheme in ("light", "dark"):
        found = findings(hero(name, scheme=scheme).page)
        assert [(f["id"], f["nodes"][0]["html"][:90]) for f in found] == []


# ------------------------------------------------------------------ README's stills


@pytest.mark.parametrize("name", forces.STILLS)
def test_a_still_is_small_asks_for_nothing_and_is_that_of_the_demo(name, finished, folder, look):
    text = (ROOT / "demos" / "pictures" / f"{name}.svg").read_bytes()
    assert len(text) <= 12_000 and re.findall(rb"https?://[^\"]+", text) == [
        b"http://www.w3.org/2000/svg"
    ]
    assert not re.search(rb"<script|<image|<foreignObject|\son\w+=|@import|url\(", text)
    for run in (folder, finished("draw")[0]):
        assert (run / f"{name}.svg").read_bytes() == text
    ground = "() => getComputedStyle(document.querySelector('.ground')).fill"
    colours = [
        look(folder / f"{name}.svg", scheme=scheme).evaluate(ground) for scheme in ("light", "dark")
    ]
    assert colours == ["rgb(245, 244, 240)", "rgb(31, 32, 38)"]


def test_the_readme_opens_with_it_and_says_it_in_its_alt():
    readme = (ROOT / "README.md").read_text("utf-8")
    shown = " ".join(re.search(r"<picture>.*?</picture>", readme, re.DOTALL).group().split())
    narrow = '<source media="(max-width: 500px)" srcset="demos/pictures/forces_narrow.svg">'
    assert narrow in shown and 'src="demos/pictures/forces.svg"' in shown
    assert f'alt="{forces.alt(forces.FIRST)}"' in shown
