"""Writes the test files of this folder with the programs that write such files.

Needs: pip install reportlab fpdf2 python-docx python-pptx ebooklib openpyxl pypdf
weasyprint; the programs qpdf, pdflatex, chromium and soffice (LibreOffice); the fonts
DejaVu and Noto CJK. Run it in this folder.
"""

import glob
import subprocess
import textwrap

import docx
import openpyxl
import pptx
import weasyprint
from docx.opc.constants import RELATIONSHIP_TYPE
from docx.oxml import OxmlElement
from docx.oxml.ns import qn
from ebooklib import epub
from fpdf import FPDF
from PIL import Image, ImageDraw
from pptx.util import Inches
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import getSampleStyleSheet
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.cidfonts import UnicodeCIDFont
from reportlab.pdfgen import canvas
from reportlab.platypus import Paragraph, SimpleDocTemplate, Table, TableStyle

LEFT = (
    "The first column begins here. Harbour pilots guide ships through the narrow channel at night. "
    "Every pilot keeps a written record of depth, wind and current. The office collects these records each "
    "morning. A clerk enters the numbers and compares them with the tide table. Differences above one metre "
    "are reported at once. "
)
RIGHT = (
    "The second column begins here. Lighthouses mark the entrance of the bay on both sides. Their lamps were "
    "replaced by efficient diodes in 2019. The affiliated workshop offers final inspections in winter. Visitors "
    "may climb the tower on Sundays between ten and four. Tickets cost five crowns. "
)
ROWS = [["Item", "Quantity", "Price"], ["Rope", "12", "140.50"], ["Anchor chain", "1", "2300.00"], ["Lamp", "4", "80.00"]]


def run(*command):
    subprocess.run(command, check=False, capture_output=True, timeout=180)


def page(path):
    return canvas.Canvas(path, pagesize=A4, invariant=1)


def columns():
    """Two columns that are drawn line by line, so that the file has the lines mixed."""
    c = page("columns.pdf")
    c.setTitle("Harbour report")
    c.setFont("Helvetica-Bold", 18)
    c.drawString(60, 780, "Harbour report")
    c.setFont("Helvetica", 10)
    y = 740
    for left, right in zip(textwrap.wrap(LEFT * 2, 45), textwrap.wrap(RIGHT * 2, 45)):
        c.drawString(60, y, left)
        c.drawString(310, y, right)
        y -= 13
    c.setFont("Helvetica", 9)
    c.drawString(60, 40, "Page 1 of 1")
    c.save()


def rotated():
    c = page("rotated.pdf")
    c.setFont("Helvetica", 12)
    c.drawString(72, 750, "Upright text comes first on this page.")
    c.saveState()
    c.translate(100, 300)
    c.rotate(90)
    c.drawString(0, 0, "This sentence is rotated by ninety degrees.")
    c.drawString(0, -15, "It has a second line.")
    c.restoreState()
    c.showPage()
    c.setPageRotation(90)
    c.setFont("Helvetica", 12)
    c.translate(595, 0)
    c.rotate(90)
    c.drawString(72, 500, "The second page is a landscape page with rotation.")
    c.drawString(72, 485, "Its second line follows.")
    c.showPage()
    c.save()


def predefined_cmaps():
    """Fonts that are not in the file, with the predefined CMaps of Adobe."""
    c = page("cmap.pdf")
    for font, text, y in (
        ("HeiseiMin-W3", "日本語の文書を変換します。東京都", 750),
        ("STSong-Light", "中文文档转换测试。北京市", 700),
        ("HYSMyeongJo-Medium", "한국어 문서 변환", 650),
    ):
        pdfmetrics.registerFont(UnicodeCIDFont(font))
        c.setFont(font, 14)
        c.drawString(72, y, text)
    c.save()


def scan():
    image = Image.new("L", (80, 100), 255)
    ImageDraw.Draw(image).text((10, 10), "scan", fill=0)
    image.save("scan.png")
    c = page("scan.pdf")
    c.drawImage("scan.png", 0, 0, 595, 842)
    c.showPage()
    c.save()


def letters():
    """Every letter is drawn alone; there are no spaces."""
    c = page("letters.pdf")
    c.setFont("Times-Roman", 12)
    x = 72
    for letter in "Every letter is drawn alone.":
        if letter != " ":
            c.drawString(x, 700, letter)
        x += pdfmetrics.stringWidth(letter, "Times-Roman", 12)
    c.save()


def table():
    styles = getSampleStyleSheet()
    SimpleDocTemplate("table.pdf", invariant=1).build(
        [
            Paragraph("Prices", styles["Heading1"]),
            Paragraph("All prices are in crowns.", styles["BodyText"]),
            Table(ROWS, style=TableStyle([("GRID", (0, 0), (-1, -1), 1, "black")])),
            Paragraph("The list ends here.", styles["BodyText"]),
        ]
    )


def subset_fonts():
    f = FPDF()
    f.add_page()
    f.add_font("dejavu", "", "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf")
    f.set_font("dejavu", size=12)
    f.multi_cell(180, 8, "Zażółć gęślą jaźń. Привет, мир. Ελληνικά.")
    f.add_font("cjk", "", glob.glob("/usr/share/fonts/**/NotoSansCJK-Regular.ttc", recursive=True)[0])
    f.ln(10)
    f.set_x(10)
    f.set_font("cjk", size=12)
    f.multi_cell(180, 8, "日本語の文書。中文文档。한국어 문서.")
    f.output("subset.pdf")


def tex():
    """Two columns of LaTeX: ligatures, hyphens, accents and mathematics."""
    source = r"""\documentclass[twocolumn]{article}\begin{document}\title{Harbour report}\author{A. Pilot}\date{}\maketitle
\section{First part}
%s

%s
\section{Second part} Efficient office affiliates find fluffy waffles. Gr\"o\ss e and caf\'e. $E = mc^2$ and $\alpha + \beta$.
\begin{itemize}\item first item\item second item\end{itemize}
\end{document}""" % (LEFT * 4, RIGHT * 4)
    open("tex.tex", "w").write(source)
    run("pdflatex", "-interaction=batchmode", "tex.tex")
    open("bitmap.tex", "w").write(source.replace(r"\begin{document}", r"\usepackage[T1]{fontenc}\begin{document}", 1))
    run("pdflatex", "-interaction=batchmode", "bitmap.tex")
    run("rm", "tex.tex", "tex.aux", "tex.log", "bitmap.tex", "bitmap.aux", "bitmap.log")


def browsers():
    html = """<!doctype html><meta charset=utf-8><title>Harbour</title><style>@page{margin:2cm}body{font-family:"DejaVu Serif"}.c{column-count:2}</style>
<h1>Harbour report</h1><div class=c><p>%s</p><p>%s</p></div><h2>Prices</h2><p>Efficient office affiliates.</p><p dir=rtl>שלום עולם</p>""" % (LEFT, RIGHT)
    open("page.html", "w").write(html)
    run("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--no-pdf-header-footer", "--print-to-pdf=chromium.pdf", "page.html")
    weasyprint.HTML("page.html").write_pdf("weasyprint.pdf")
    run("rm", "page.html")


def link(paragraph, url, text):
    rel = paragraph.part.relate_to(url, RELATIONSHIP_TYPE.HYPERLINK, is_external=True)
    element = OxmlElement("w:hyperlink")
    element.set(qn("r:id"), rel)
    run_ = OxmlElement("w:r")
    t = OxmlElement("w:t")
    t.text = text
    run_.append(t)
    element.append(run_)
    paragraph._p.append(element)


def word():
    d = docx.Document()
    d.core_properties.title = "Harbour report"
    d.add_heading("Harbour report", 0)
    d.add_heading("First part", 1)
    p = d.add_paragraph("Pilots keep ")
    p.add_run("written").bold = True
    p.add_run(" records in ")
    p.add_run("every").italic = True
    p.add_run(" boat. See ")
    link(p, "https://example.com/tides", "the tide table")
    p.add_run(".")
    for text, style in (
        ("first item", "List Bullet"),
        ("inner item", "List Bullet 2"),
        ("second item", "List Bullet"),
        ("one", "List Number"),
        ("two", "List Number"),
    ):
        d.add_paragraph(text, style=style)
    t = d.add_table(4, 3)
    for i, row in enumerate(ROWS):
        for k, value in enumerate(row):
            t.cell(i, k).text = value
    d.add_heading("Second part", 2)
    d.add_paragraph("日本語の文書。 A quotation follows.")
    d.add_paragraph("Calm sea, no wind.", style="Quote")
    d.save("python.docx")
    run("soffice", "--headless", "--convert-to", "pdf:writer_pdf_Export", "--outdir", "libreoffice", "python.docx")
    run("mv", "libreoffice/python.pdf", "libreoffice.pdf")
    html = """<html><head><title>Tides</title></head><body><h1>Tides</h1><p>High water<a class="sdfootnoteanc" name="sdfootnote1anc" href="#sdfootnote1sym"><sup>1</sup></a> is at noon.</p>
<ul><li>first<ul><li>inner</li></ul></li></ul><ol><li>one</li><li>two</li></ol><pre>x := 1
  y := 2</pre><table border=1><tr><th>Day</th><th>Height</th></tr><tr><td>Monday</td><td>2.1</td></tr></table>
<p><a href="https://example.com/moon">The moon</a> moves the sea.</p><div id="sdfootnote1"><p><a class="sdfootnotesym" name="sdfootnote1sym" href="#sdfootnote1anc">1</a>At the harbour.</p></div></body></html>"""
    open("libreoffice.html", "w").write(html)
    run("soffice", "--headless", "--infilter=HTML (StarWriter)", "--convert-to", "docx:MS Word 2007 XML", "libreoffice.html")
    run("rm", "-r", "libreoffice.html", "libreoffice")


def slides():
    p = pptx.Presentation()
    p.core_properties.title = "Harbour talk"
    s = p.slides.add_slide(p.slide_layouts[0])
    s.shapes.title.text = "Harbour talk"
    s.placeholders[1].text = "for new pilots"
    s = p.slides.add_slide(p.slide_layouts[1])
    s.shapes.title.text = "Rules"
    body = s.placeholders[1].text_frame
    body.text = "Keep records"
    for text, level in (("of depth", 1), ("Report differences", 0)):
        q = body.add_paragraph()
        q.text, q.level = text, level
    s.notes_slide.notes_text_frame.text = "Show the old book."
    s = p.slides.add_slide(p.slide_layouts[5])
    s.shapes.title.text = "Prices"
    t = s.shapes.add_table(4, 3, Inches(1), Inches(2), Inches(6), Inches(2)).table
    for i, row in enumerate(ROWS):
        for k, value in enumerate(row):
            t.cell(i, k).text = value
    p.save("slides.pptx")


def sheets():
    b = openpyxl.Workbook()
    s = b.active
    s.title = "Prices"
    for row in ROWS:
        s.append(row)
    s = b.create_sheet("Days")
    s.append(["Day", "Open|closed"])
    s.append(["Monday", True])
    s = b.create_sheet("Hidden")
    s.append(["secret"])
    s.sheet_state = "hidden"
    b.save("sheets.xlsx")


def book():
    b = epub.EpubBook()
    b.set_identifier("harbour")
    b.set_title("The harbour")
    b.set_language("en")
    chapters = []
    for i, text in enumerate((LEFT, RIGHT)):
        c = epub.EpubHtml(title="Chapter %d" % (i + 1), file_name="c%d.xhtml" % i)
        c.content = "<h1>Chapter %d</h1><p>%s</p><ul><li>item</li></ul>" % (i + 1, text)
        b.add_item(c)
        chapters.append(c)
    b.toc = chapters
    b.add_item(epub.EpubNcx())
    b.add_item(epub.EpubNav())
    b.spine = ["nav", *chapters]
    epub.write_epub("book.epub", b)


def encrypted():
    run("qpdf", "columns.pdf", "--encrypt", "", "owner", "256", "--", "owner256.pdf")
    run("qpdf", "--allow-weak-crypto", "columns.pdf", "--encrypt", "", "owner", "40", "--", "owner40.pdf")
    run("qpdf", "--allow-weak-crypto", "columns.pdf", "--encrypt", "", "owner", "128", "--use-aes=y", "--", "owner128.pdf")
    run("qpdf", "columns.pdf", "--encrypt", "secret", "owner", "256", "--", "user256.pdf")
    run("qpdf", "--allow-weak-crypto", "columns.pdf", "--encrypt", "geheim\u00e9", "owner", "40", "--", "user40.pdf")
    run("qpdf", "--allow-weak-crypto", "columns.pdf", "--encrypt", "secret", "owner", "128", "--use-aes=y", "--", "user128.pdf")
    run("qpdf", "--object-streams=generate", "columns.pdf", "streams.pdf")


def converted():
    """Files that LibreOffice writes in other formats."""
    for name, kind in ("python.docx", "odt"), ("python.docx", "rtf"), ("sheets.xlsx", "ods"), ("slides.pptx", "odp"):
        run("soffice", "--headless", "--convert-to", kind, name)


for make in (columns, rotated, predefined_cmaps, scan, letters, table, subset_fonts, tex, browsers, word, slides, sheets, book, encrypted, converted):
    make()
