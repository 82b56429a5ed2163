# SPDX-License-Identifier: Apache-2.0
"""Gives the site its navigation, and links to the source where a page links to a file that is no page."""

import itertools
import os
import re
from pathlib import Path, PurePosixPath

LINK = re.compile(r"(\]\()([^)#\s]+)(#[^)\s]*)?(\))")
FENCE = re.compile(r"^ *```")


def on_config(config):
    root = Path(config.docs_dir)
    config.nav = navigation(root, {str(p.relative_to(root)) for p in root.rglob("*.md")})
    return config


def navigation(root, pages):
    """Returns the rows of the first table of docs/README.md as sections, in which each page is linked once."""
    left = {p for p in pages if not re.fullmatch(r"docs/decisions/0.*", p)}
    nav = take(left, ["README.md", "docs/README.md"])
    lines = (root / "docs" / "README.md").read_text().splitlines()
    begin = lines.index("| you | read |") + 2
    for row in itertools.takewhile(str.strip, lines[begin:]):
        reader, links = row.strip("|").split("|", 1)
        section = []
        for match in LINK.finditer(links):
            page = os.path.normpath(f"docs/{match[2]}")
            if PurePosixPath(page).name == "README.md" and page.count("/") == 2 and page.startswith("docs/"):
                folder = take(left, [page]) + take(left, sorted(p for p in left if p.startswith(page.removesuffix("README.md"))))
                section += [{PurePosixPath(page).parent.name.capitalize(): folder}] if len(folder) > 1 else folder
            else:
                section += take(left, [page])
        nav.append({f"You {reader.strip()}": section})
    # Pages below docs that are left were forgotten, and the build warns of them.
    nav.append({"The project": take(left, sorted(p for p in left if not p.startswith("docs/")))})
    return nav


def take(left, pages):
    """Removes pages from those that are left, and returns the ones that it has removed."""
    found = [page for page in dict.fromkeys(pages) if page in left]
    left.difference_update(found)
    return found


def on_page_markdown(markdown, page, config, files):
    """Makes links to files of the repository that are no pages into links to the source."""
    source = Path(os.environ["SITE_SOURCE"])
    folder = PurePosixPath(page.file.src_uri).parent

    def source_link(match):
        target = match[2]
        if "://" in target or target.startswith("mailto:"):
            return match[0]
        path = os.path.normpath(folder / target)
        if files.get_file_from_path(path) or not (source / path).exists():
            return match[0]
        kind = "tree" if (source / path).is_dir() else "blob"
        return f"{match[1]}{config.extra['source_url']}/{kind}/main/{path}{match[3] or ''}{match[4]}"

    lines, code = [], False
    for line in markdown.split("\n"):
        if FENCE.match(line):
            code = not code
        lines.append(line if code else LINK.sub(source_link, line))
    return "\n".join(lines)
