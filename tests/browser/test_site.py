"""The report as a reader meets it: complete, offline, on any screen, by mouse and by keyboard."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from chromium import PHONE, Browser
from workspace import Workspace

from schemas.claims import STATES

WEIGHT = 2_500_000  # bytes of a page with all that it loads, pictures as they come in sight
PAPER = re.compile(r"https://arxiv\.org/abs/\d{4}\.\d{5}")
WORDS, SCREENS = 3_000, 15  # that a page opens with; of a screen of 900 pixels
SHOWN = 50  # that the search lists at once (site.js)


class Page(HTMLParser):
    """Where a page leads, and where one can arrive in it."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.ids: list[str] = []
        self.images: list[dict[str, str | None]] = []
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "img":
            self.images.append(dict(attrs))
        for name, value in attrs:
            if name in ("href", "src") and value and not value.startswith("data:"):
                self.links.append(value)
            elif name == "id" and value:
                self.ids.append(value)


def pages(site: Path) -> list[str]:
    return sorted(str(path.relative_to(site)) for path in site.rglob("*.html"))


def study(site: Path) -> str:
    """The page of a study whose figures are drawn at scale smoke as at others: depth's where it is there."""
    study_pages = [page for page in pages(site) if page.startswith("study/")]
    return "study/depth.html" if "study/depth.html" in study_pages else study_pages[0]


def test_every_link_arrives(smoke: Workspace) -> None:
    site = smoke.path / "data/report"
    known = {site / page: Page(site / page) for page in pages(site)}
    for file, page in known.items():
        assert len(page.ids) == len(set(page.ids)), f"{file}: an id twice"
        for link in page.links:
            target = urlsplit(link)
            if PAPER.fullmatch(link):  # all that leads elsewhere; no page needs it
                continue
            assert not target.scheme and not target.netloc, f"{file}: {link} leads elsewhere"
            where = (file.parent / unquote(target.path)).resolve() if target.path else file
            assert where.is_file() and where.is_relative_to(site.resolve()), f"{file}: {link}"
            if target.fragment:
                assert target.fragment in known[where].ids, f"{file}: {link}"


def shown(site: Path) -> list[str]:
    """Every page that is one of its kind; of artifacts, which come by the hundred, the three largest of each kind."""
    artifacts: dict[str, list[str]] = {}
    for page in sorted(pages(site), key=lambda page: (site / page).stat().st_size):
        if page.startswith("artifact/"):
            artifacts.setdefault(page.split("-")[0], []).append(page)
    rest = [page for page in pages(site) if not page.startswith("artifact/")]
    return rest + [page for group in artifacts.values() for page in group[-3:]]


def searchable(site: Path) -> list[dict[str, str]]:
    """Return what the search of the overview knows."""
    text = (site / "search.js").read_text(encoding="utf-8")
    items: list[dict[str, str]] = json.loads(text.removeprefix("sandglass.items(").removesuffix(");\n"))
    return items


def test_every_claim_and_figure_has_a_permalink_that_the_search_knows(smoke: Workspace) -> None:
    site = smoke.path / "data/report"
    items = searchable(site)
    ids = {page: set(Page(site / page).ids) for page in pages(site)}
    for item in items:
        target = urlsplit(item["address"])
        assert target.path in ids and (not target.fragment or target.fragment in ids[target.path]), item
    addresses = {item["address"] for item in items}
    for name in pages(site):
        if name.startswith("study/"):
            page = Page(site / name)
            anchors = [each for each in page.ids if each.startswith(("claim-", "figure-"))]
            assert len(anchors) > 10 and {f"{name}#{each}" for each in anchors} <= addresses
            for anchor in anchors:
                assert f"#{anchor}" in page.links or f"../{name}#{anchor}" in page.links, anchor
    assert {item["kind"] for item in items} == {
        "study",
        "section",
        "word",
        "claim",
        "figure",
        "erratum",
        "check",
        "dataset",
        "run",
        "table",
        "theory",
    }


@pytest.mark.slow
def test_every_page_is_quiet_asks_for_nothing_elsewhere_and_is_light(browser: Browser) -> None:
    addresses = shown(browser.site)
    assert len(addresses) > 20
    drawn = 0
    said: dict[str, list[str]] = {}
    for page in addresses:
        browser.open(page)
        browser.read()
        urls, failed = browser.requests()
        files = [Path(unquote(urlsplit(url).path)) for url in urls if not url.startswith("data:")]
        assert sum(file.stat().st_size for file in files) <= WEIGHT, page
        drawn += browser.draw()
        said[page] = browser.console()
        more, failed_later = browser.requests()
        assert failed + failed_later == [], page
        assert all(url.startswith(("file:///", "data:")) for url in urls | more), page
    assert {page: lines for page, lines in said.items() if lines} == {}
    figures = [page for page in pages(browser.site) if page.startswith("artifact/figure-")]
    assert drawn >= len(figures)  # each on the page of its study


def test_figures_draw_what_their_image_shows(browser: Browser) -> None:
    page = study(browser.site)
    images = Page(browser.site / page).images
    browser.open(page)
    browser.draw()
    after = browser.js(
        "return [...document.querySelectorAll('[data-chart] svg')].map("
        "s => [s.getAttribute('aria-label'), s.getBoundingClientRect().width, s.querySelectorAll('path').length])"
    )
    assert len(after) == len(images) >= 1
    for image, (label, width, marks) in zip(images, after, strict=True):
        assert label == image["alt"] and len(label) > 40
        assert abs(width - int(image["width"] or 0)) <= 40 and marks > 10


def test_without_scripts_the_images_are_there(browser: Browser) -> None:
    browser.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    browser.open(study(browser.site))
    sizes = browser.js("return [...document.querySelectorAll('img')].map(i => { i.loading = 'eager'; return i.src; })")
    assert sizes and all((browser.site / unquote(urlsplit(src).path)).is_file() for src in sizes)
    browser.wait(
        "return [...document.querySelectorAll('img')].every(i => i.complete && i.naturalWidth > 100)", "images"
    )
    assert browser.js("return document.querySelectorAll('#theme, [data-drawn], th button').length") == 0


def _background(browser: Browser) -> str:
    colour: str = browser.js("return getComputedStyle(document.body).backgroundColor")
    return colour


def test_dark_and_light(browser: Browser) -> None:
    light = _background(browser)
    browser.emulate(dark=True)
    dark = _background(browser)
    assert light == "rgb(255, 255, 255)" and dark != light
    browser.driver.find_element("id", "theme").click()
    assert _background(browser) == light
    browser.open("theory.html")  # the choice is remembered, against the system
    assert _background(browser) == light
    button = browser.driver.find_element("id", "theme")
    assert button.get_attribute("aria-label") == "Switch to dark colours"
    button.click()
    assert _background(browser) == dark


def test_a_page_opens_short(browser: Browser) -> None:
    own = [page for page in pages(browser.site) if page.startswith("study/")]
    for page in (*own, "index.html", "errata.html"):
        browser.open(page)
        words = browser.js("return document.querySelector('main').innerText.split(/\\s+/).length")
        height = browser.js("return document.documentElement.scrollHeight")
        assert height <= SCREENS * 900, page
        assert words <= WORDS or page == "errata.html", page  # that one is a list of titles


def test_what_is_folded_opens_where_a_link_leads_into_it(browser: Browser) -> None:
    page = study(browser.site)
    claims = [anchor for anchor in Page(browser.site / page).ids if anchor.startswith("claim-")]
    sight = "const e = document.getElementById(arguments[0]), r = e.getBoundingClientRect(); "
    sight += "return e.checkVisibility({contentVisibilityAuto: true}) && r.top >= 0 && r.top < innerHeight"
    browser.open(page)
    assert not any(browser.js(sight, claim) for claim in claims)
    for claim in (claims[0], claims[-1]):
        browser.open("theory.html")
        browser.js(f"location.href = '{page}#{claim}'")
        browser.wait(
            f"if (!document.getElementById('{claim}')) return false; " + sight.replace("arguments[0]", f"'{claim}'"),
            claim,
        )
    browser.open(page)  # from a finding to its claim
    link = browser.js("return document.querySelector('.judged a').getAttribute('href')")
    browser.js("document.querySelector('.judged a').click()")
    browser.wait(f"return document.querySelector('{link}').closest('details').open", link)


def test_a_word_is_explained_by_mouse_and_by_keyboard(browser: Browser) -> None:
    page = study(browser.site)
    browser.open(page)
    height = browser.js("return document.documentElement.scrollHeight")
    box = "const box = document.getElementById('explanation'); "
    for begin, end in (("focus", "blur"), ("pointerenter", "keydown")):
        said = browser.js(
            "const term = document.querySelector('a.term'); term.scrollIntoView({block: 'center'});"
            f"term.dispatchEvent(new Event('{begin}')); return document.querySelector(term.hash).textContent.trim()"
        )
        browser.wait(f"{box}return !box.hidden", begin)
        shown, left, right = browser.js(
            f"{box}const r = box.getBoundingClientRect(); return [box.textContent.trim(), r.left, r.right]"
        )
        assert shown == said != "" and 0 <= left < right <= 1280
        assert browser.js("return document.documentElement.scrollHeight") == height  # nothing moves
        target = "document.querySelector('a.term')" if end == "blur" else "window"
        browser.js(f"{target}.dispatchEvent(new KeyboardEvent('{end}', {{key: 'Escape'}}))")
        browser.wait(f"{box}return box.hidden", end)


def test_tables_sort(browser: Browser) -> None:
    browser.open("artifacts.html")

    def sizes() -> list[int]:
        row_sizes: list[int] = browser.js(
            "return [...document.querySelector('table.sortable').tBodies[0].rows]"
            ".map(r => Number(r.cells[4].dataset.sort))"
        )
        return row_sizes

    first = sizes()
    header = browser.driver.find_elements("css selector", "table.sortable th[scope=col]")[4]
    header.find_element("tag name", "button").click()
    assert header.get_attribute("aria-sort") == "ascending"
    assert sizes() == sorted(first) != first
    header.find_element("tag name", "button").send_keys("\n")
    assert header.get_attribute("aria-sort") == "descending"
    assert sizes() == sorted(first, reverse=True)


def test_the_search_finds_claims_figures_and_artifacts(browser: Browser) -> None:
    items = searchable(browser.site)
    browser.open("index.html")
    urls, _ = browser.requests()
    assert not any("search.js" in url for url in urls)  # who does not search does not load it
    query = browser.driver.find_element("id", "query")
    results = "[...document.querySelectorAll('#found a')].map(a => a.getAttribute('href'))"
    for kind in ("claim", "figure", "run", "table"):
        item = next(each for each in items if each["kind"] == kind)
        words = item["title"].removesuffix(" …").upper()
        browser.js("arguments[0].value = ''", query)
        query.send_keys(words)
        browser.wait(f"return {results}.includes({json.dumps(item['address'])})", kind)
    browser.js("arguments[0].value = ''", query)
    query.send_keys("xylophone")
    browser.wait("return document.querySelector('#count').textContent === 'nothing found'", "the count")
    assert browser.js(f"return {results}") == []
    assert browser.console() == []


# What is typed, and the title that must come among the first three.
ASKED = [
    ("attention glitches", "(flipflop)"),
    ("interpretability", "(dyck)"),
    ("noise contrastive estimation", "(nce)"),
    ("dyck:5", "Claim 5:"),
    ("shortcuts", "(automata)"),
    ("automta", "(automata)"),  # a letter is missing
    ("grammars Dyck", "(dyck)"),
]


@pytest.mark.slow
def test_the_search_forgives_spelling_and_stands_in_the_address(browser: Browser) -> None:
    browser.open("index.html")
    titles = "[...document.querySelectorAll('#found a')].map(a => a.textContent)"
    query = browser.driver.find_element("id", "query")

    def found(words: str) -> list[str]:
        browser.js("arguments[0].value = ''; document.querySelector('#count').textContent = ''", query)
        query.send_keys(words)
        browser.wait("return document.querySelector('#count').textContent !== ''", words)
        titled: list[str] = browser.js(f"return {titles}")
        return titled

    everything = [item["title"] for item in searchable(browser.site)]  # of one study, with --study
    for words, title in ASKED:
        if not any(title in each for each in everything):
            continue
        assert any(title in each for each in found(words)[:3]), (words, found(words)[:3])
    assert found("generalisation") == found("generalization") != []
    assert found("self-supervision") == found("self supervision")
    numbered = found("claim 4")
    assert numbered and all(each.startswith("Claim 4:") for each in numbered[:4])
    assert not any(each.startswith(("Claim 14", "Claim 40")) for each in numbered[:4])

    browser.js("document.querySelector('#search input[value=\"holds\"]').click()")
    browser.wait("return location.hash.includes('q=claim') && location.hash.includes('v=holds')", "the address")
    address = browser.js("return location.hash")
    browser.open("theory.html")  # another page, so that the next is loaded anew
    browser.js(f"location.href = 'index.html{address}'")
    browser.wait("return document.querySelector('#query')", "the overview")
    browser.wait("return document.querySelector('#query').value === 'claim 4'", "the query of the address")
    assert browser.js("return document.querySelector('#search input[value=\"holds\"]').checked")


@pytest.mark.study("dyck")
def test_a_box_on_every_page_leads_to_the_search(browser: Browser) -> None:
    browser.open("theory.html")
    box = browser.driver.find_element("css selector", "#find input")
    box.send_keys("dyck:5\n")
    browser.wait("return location.pathname.endsWith('index.html') && document.querySelector('#found a')", "the result")
    assert browser.js("return document.querySelector('#found a').textContent").startswith("Claim 5:")


@pytest.mark.study("dyck")
def test_a_row_that_a_link_leads_to_is_in_sight(browser: Browser) -> None:
    browser.driver.set_window_size(1280, 900)
    for page in ("artifact/claims-dyck.html", "study/dyck.html"):
        browser.open(page)
        covered = browser.js("""
            const rows = [...document.querySelectorAll('.scroll tr[id]')];
            return rows.filter((row) => {
              row.scrollIntoView();
              const head = row.closest('table').tHead.rows[0].cells[0].getBoundingClientRect();
              return row.getBoundingClientRect().top < head.bottom - 1;
            }).map((row) => row.id);""")
        assert covered == [], page


def test_claims_are_filtered_by_verdict(browser: Browser) -> None:
    claims = [item for item in searchable(browser.site) if item["kind"] == "claim"]
    browser.open("index.html")
    chips = "[...document.querySelectorAll('.chips li')].filter(chip => chip.offsetParent !== null).length"
    browser.wait(f"return {chips} === {len(claims)}", "all claims, before any is chosen")
    for verdict in STATES:
        box = browser.driver.find_element("css selector", f"#search input[value='{verdict}']")
        box.click()
        expected = [item for item in claims if item["verdict"] == verdict]
        more = f", the first {SHOWN} of them here" if len(expected) > SHOWN else ""
        count = f"{len(expected) or 'nothing'} found{more}"
        browser.wait(f"return document.querySelector('#count').textContent === {json.dumps(count)}", verdict)
        shown = browser.js("return [...document.querySelectorAll('#found .badge')].map(b => b.textContent)")
        assert shown == [verdict] * len(expected[:SHOWN]) and browser.js(f"return {chips}") == len(expected)
        box.click()
    browser.wait(f"return {chips} === {len(claims)}", "all of them again")


def test_a_figure_becomes_a_png_or_a_specification_where_it_is_read(browser: Browser) -> None:
    browser.open(study(browser.site))
    base = browser.js("return document.querySelector('[data-chart]').dataset.chart")
    name = base.split("/").pop()
    for number, suffix in enumerate(("png", "vl.json")):
        browser.js(f"document.querySelectorAll('.saved button')[{number}].click()")
        saved = f"document.querySelectorAll('.saved button')[{number}].dataset.saved"
        assert browser.wait(f"return {saved}", suffix) == f"{name}.{suffix}"
        assert not list(browser.site.rglob(f"*.{suffix}"))
    (file,) = (browser.site.parent / base.removesuffix(f"/{name}")).rglob(f"{name}.vl.json")
    assert browser.js(f"return sandglass.charts[{json.dumps(base)}]") == json.loads(file.read_text())
    assert browser.console() == []


def test_by_keyboard(browser: Browser) -> None:
    from selenium.webdriver.common.keys import Keys

    body = browser.driver.find_element("tag name", "body")
    body.send_keys(Keys.TAB)
    skip = browser.driver.switch_to.active_element
    assert skip.text == "Skip to the content" and skip.rect["x"] >= 0
    assert browser.js("return getComputedStyle(document.activeElement).outlineStyle") == "solid"
    skip.send_keys(Keys.ENTER)
    assert browser.js("return document.activeElement.id") == "main"
    browser.open(study(browser.site))
    scrolls = "return [...document.querySelectorAll('.scroll, .chart')]"
    assert browser.js(f"{scrolls}.every(box => box.tabIndex === 0 && box.getAttribute('aria-label'))")


def test_landmarks_and_headings(browser: Browser) -> None:
    for page in ("index.html", "errata.html", study(browser.site), "artifacts.html"):
        browser.open(page)
        counts = browser.js("return ['header', 'main', 'footer', 'h1'].map(t => document.querySelectorAll(t).length)")
        assert counts == [1, 1, 1, 1], page
        levels = browser.js(
            "return [...document.querySelectorAll('main h1, main h2, main h3')].map(h => +h.tagName[1])"
        )
        assert all(b - a <= 1 for a, b in pairwise(levels)), page
        assert browser.js("return document.documentElement.lang") == "en"


@pytest.mark.slow
def test_a_phone_shows_pages_whole(browser: Browser) -> None:
    kinds = {page.split("-")[0]: page for page in pages(browser.site)}
    browser.emulate(PHONE)
    for page in kinds.values():
        browser.open(page)
        browser.draw()
        width = browser.js("return document.documentElement.scrollWidth")
        assert width <= PHONE[0], page
        assert browser.js("return parseFloat(getComputedStyle(document.body).fontSize)") >= 16
        # What a figure finds is read without moving it sideways; on a wide screen its title says so alone.
        assert _shown(browser) == {"block"} or not _shown(browser), page
    browser.emulate()
    browser.open(study(browser.site))
    assert _shown(browser) == {"none"}


def _shown(browser: Browser) -> set[str]:
    script = "return [...document.querySelectorAll('.narrow')].map((each) => getComputedStyle(each).display)"
    return set(browser.js(script))
