# SPDX-License-Identifier: Apache-2.0
"""A report looked at without a browser: its elements, its text, and whether it is harmless."""
import html.parser

VOID = {"meta", "br"}
KNOWN = VOID | set("""html head title style body header main section h1 h2 p strong b span code pre a ul li dl dt dd div
    details summary svg rect table tr th td time i""".split())


class Page(html.parser.HTMLParser):
    """Raises where an element is unknown, is not closed in order, or could do or fetch something."""

    def __init__(self, source):
        super().__init__(convert_charrefs=True)
        self.open, self.elements, self.texts, self.headings, self.ids, self.links = [], [], [], [], [], []
        self.open_details = 0
        self.feed(source)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attrs):
        assert tag in KNOWN or (tag == "title" and "svg" in self.open), tag
        for name, value in attrs:
            assert not name.startswith("on"), name
            if name in ("src", "href", "srcset", "action", "data"):
                assert name == "href" and value.startswith("#"), (name, value)
                self.links.append(value[1:])
            if name == "id":
                self.ids.append(value)
        self.open_details += tag == "details" and "open" in dict(attrs)
        self.elements.append(tag)
        if tag in ("h1", "h2"):
            self.headings.append("")
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, (tag, self.open)
        self.open.pop()

    def handle_data(self, data):
        if self.open and self.open[-1] == "style":
            return
        self.texts.append(data)
        if "h1" in self.open or "h2" in self.open:
            self.headings[-1] += data

    @property
    def text(self):
        return "".join(self.texts)
