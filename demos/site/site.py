"""The book as a site: chapters, exercises and exhibits on pages that lead to one another.

Claim. The tutorial is the source. So its pages are made from the files as they are: prose from the
docstrings, code from the lines that run. Every example is run, and every link, formula and chapter
is checked. What does not fit ends the build.

    python -m demos site [--out DIR] [--all] [--base URL] [--runtime DIR] [--serve [PORT]]

The pages need no server and ask for nothing from outside. `--all` also runs the demos whose
packages are installed, so that their pages show what they found (some minutes). `--base` is the
address at which the site will stand. With `--runtime` the examples run in the reader's browser,
where the site is served: `python -m demos runtime DIR` gets what they need. `--serve` shows the
site on this machine, with the runtime in out/runtime if there is one.

Why not a documentation generator? Sphinx reads reStructuredText, in which a docstring's displays
would be quotations. pdoc shows a module's members and not its text in order. mkdocs wants a
Markdown file for each page. pycco sets comments beside code, and not docstrings.
"""

# %% Set-up

import argparse
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from demos import files, options, stop
from demos.laboratory import _pages as laboratory
from demos.learn import _pages as learn
from demos.live._breaks import kept
from demos.live._runtime import OUT, checked
from demos.live._try import page as try_page
from demos.museum import _pages as museum
from demos.pages.publish import refuse_to_replace, renew_list
from demos.pages.templates import fill
from demos.site import _demos, _sections
from demos.site._book import Book
from demos.site._chapters import page_of_chapter, page_of_contents, page_of_tool
from demos.site._checking import failures, version, wrong_links
from demos.site._contents import ROOT, book
from demos.site._document import copy_beside, document
from demos.site._landing import landing
from demos.site._notebooks import of_chapter, of_demo
from demos.site._serving import listening
from demos.site._tasks import tasks
from demos.site._words import words
from minigrad.runs.saving import write_whole

SECONDS = 12  # of a run
LEFT_OUT = ("site", "learn", "benchmark")  # of --all


def more(parser: argparse.ArgumentParser) -> None:
    """Add this demo's own options."""
    parser.add_argument("--all", action="store_true", help="run the demos, for their pages")
    parser.add_argument("--base", default="", help="the address at which the site will stand")
    parser.add_argument("--runtime", type=Path, help="folder of Python for pages that run")
    parser.add_argument(
        "--serve", metavar="PORT", nargs="?", type=int, const=8765, help="show the site (%(const)s)"
    )


chosen = options("site", __doc__.splitlines()[0], add=more)
refuse_to_replace(chosen.out / "index.html")
base = chosen.base.rstrip("/")
runtime = checked(chosen.runtime) if chosen.runtime else None
if chosen.serve is not None and runtime is None and OUT.is_dir():
    try:
        runtime = checked(OUT)
    except OSError as error:  # (the site was asked for, and not this folder)
        print(f"no Python for the pages: {error}", flush=True)
server = listening(chosen.out, chosen.serve) if chosen.serve is not None else None
began = time.perf_counter()

# %% Examples
# All examples of the book are run, beside the writing of the pages. So are definitions that are
# broken in known ways, for what the reader is told of them.

contents = Book(*book(), chosen.out)
names = list(contents.files)
pool = ProcessPoolExecutor(2)
broken = ProcessPoolExecutor(1)  # (a process of its own: its definitions are broken)
answers = broken.submit(kept)
examples = [pool.submit(failures, names[i::2]) for i in range(2)]

# %% Demos
# A demo's page shows what its run has left in this folder. Without a run it has the command.

for name in files() if chosen.all else ():
    if name not in LEFT_OUT:
        command = [sys.executable, "-m", "demos", name, "--out", str(chosen.out / "demos" / name)]
        print(f"{name} …", flush=True)
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode:
            print(f"   {(done.stderr.strip() or done.stdout).splitlines()[-1]}")

# %% Pages

contents.kept = answers.result()
broken.shutdown()
pages = [landing(contents), page_of_contents(contents), words(contents), tasks(contents)]
pages += [page_of_chapter(contents, each) for each in contents.chapters.values()]
pages += [page_of_tool(contents, each) for each in contents.tools]
for show in (laboratory, learn, museum, _demos):
    pages += show.pages(contents)
if runtime:
    pages += [runtime.versions(), try_page()]

# %% Files

now = version()
written = {page.file: document(page, now, base, runtime) for page in pages}
written["find.js"] = contents.find()
written["sections.js"] = _sections.script(pages)
for number, chapter in contents.chapters.items():
    written[f"notebooks/{number}.ipynb"] = of_chapter(ROOT / chapter.source.path)
for name, path in files().items():
    if name != "learn":  # (which asks for a folder on its command line)
        written[f"notebooks/{name}.ipynb"] = of_demo(path)
if base:
    written["sitemap.xml"] = f"{fill('site/sitemap.xml', base=base, pages=pages)}\n"
(chosen.out / "notebooks").mkdir(exist_ok=True)
for name, text in written.items():
    write_whole(chosen.out / name, text.encode())
copy_beside(chosen.out)
_demos.remove_pages(chosen.out)
if runtime:
    runtime.copy_to(chosen.out)
laboratory.write_explorables(chosen.out, contents.sources())

# %% Checks

wrong = wrong_links(chosen.out, pages)
wrong += [said for each in examples if (said := each.result())]
pool.shutdown()
if wrong:
    stop("the site is not whole:\n" + "\n".join(wrong[:20]))
renew_list(chosen.out.parent)
print(f"{len(pages)} pages in {time.perf_counter() - began:.1f} s: {chosen.out / 'index.html'}")

# %% Serving
# A browser runs Python only for pages that come from a server.

if server:
    print(f"http://127.0.0.1:{server.server_port}/ until Ctrl-C", flush=True)
    server.serve_forever()

# %% Try it
# - Give a docstring a formula with a letter that no formula has, as `⊕`: what ends the build, and
#   why is that better than a page without the letter?
# - Rename `backward` in chapter 0: which pages led there?
