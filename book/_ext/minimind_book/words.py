"""The words of the pages around the text, one table a language."""

import re

from markupsafe import Markup

WORDS = {
    "en": {
        "skip": "Skip to the text",
        "contents": "Contents",
        "close": "Close",
        "search": "Search",
        "search_book": "Search this book",
        "search_needs_scripts": "The search runs in your browser and needs JavaScript.",
        "figures_need_scripts": "Without JavaScript, the figures on this page are still pictures.",
        "view": "What the page shows",
        "read": "Read",
        "code": "Code",
        "more": "More",
        "run": "Run",
        "colab": "Open in Colab",
        "notebook": "Download: a notebook that needs no network",
        "runs": Markup(
            'This page is a notebook: <a href="{colab}">run it in Colab</a>, '
            '<a href="{notebook}" download>as one file with the package inside</a>, '
            "or in JupyterLab with <code>make lab</code>."
        ),
        "source": "Source on GitHub",
        "print": "Print",
        "theme": "Color mode",
        "beside": "Previous and next page",
        "before": "Previous",
        "next": "Next",
        "by": "By",
        "one_line": "code, 1 line",
        "lines": "code, {} lines",
        "figure": "Figure {}. ",
        "not_run": "Your turn: write it in the notebook. Run opens it in Colab, or gives it to you as a file.",
        "zoom_out": "Zoom out: see this part in the whole model",
        "heading_link": "Link to this heading",
        "other": "中文",
        "other_short": "中文",
        "other_hint": "本页的中文版",
    },
    "zh": {
        "skip": "跳到正文",
        "contents": "目录",
        "close": "关闭",
        "search": "搜索",
        "search_book": "搜索本书",
        "search_needs_scripts": "搜索在你的浏览器里进行，需要 JavaScript。",
        "figures_need_scripts": "没有 JavaScript，这一页上的图就只是静止的画面。",
        "view": "页面显示什么",
        "read": "阅读",
        "code": "代码",
        "more": "更多",
        "run": "运行",
        "colab": "在 Colab 中打开",
        "notebook": "下载：无需网络的笔记本",
        "runs": Markup(
            '这一页就是一个笔记本：可以<a href="{colab}">在 Colab 里运行</a>，'
            '可以<a href="{notebook}" download>下载成一个文件</a>，包就在里面，'
            "也可以用 <code>make lab</code> 在 JupyterLab 里打开。"
        ),
        "source": "GitHub 上的源文件",
        "print": "打印",
        "theme": "颜色模式",
        "beside": "上一页和下一页",
        "before": "上一页",
        "next": "下一页",
        "by": "作者",
        "one_line": "代码，1 行",
        "lines": "代码，{} 行",
        "figure": "图 {}　",
        "not_run": "轮到你了：请在笔记本里写。“运行”可以在 Colab 里打开它，或者把文件交给你。",
        "zoom_out": "缩小：看这个部件在整个模型里的位置",
        "heading_link": "指向本节的链接",
        "other": "English",
        "other_short": "EN",
        "other_hint": "This page in English",
        "book": "从内部看 MiniMind",
        "listing": "代码 %s",
        "author": "MiniMind 一书的贡献者",
        "untranslated": "这一页还没有中文，下面是英文原文。",
    },
}

# The words of scripts that replace the English ones in them: a page carries them, so English pages are no heavier.
SCRIPT_WORDS = {
    "shell": {
        "copy": "复制",
        "copied": "已复制",
        "mode": "颜色模式：{}",
        "modes": {"auto": "自动", "light": "浅色", "dark": "深色"},
        "reset": "恢复初始状态",
        "right": "猜对了。",
        "wrong": "不对。",
        "read": "已读 {} 章，共 {} 章；只有这个浏览器知道",
    },
    "host": {
        "table": "初始数值（表格）",
        "failed": "这张图没能在这个浏览器里启动；这里改为列出它的数值。",
    },
    "search": {
        "found": "找到的页面和小节：{}。",
        "nothing": "没有找到。请换一个词，或者少写几个字。",
        "instead": "书里没有“{}”，这里找的是“{}”。",
        "all": "全部结果",
    },
}

# The bold words that begin a callout -> the name of it that styles and scripts know.
CALLOUTS = {"先猜一猜": "predict", "先猜一猜，再拖动": "predict-then-drag"}


def words(language: str | None) -> dict[str, str]:
    """The table of `language`; English stands in for one that has none."""
    return WORDS.get(re.split("[-_]", language or "en")[0], WORDS["en"])  # Sphinx says zh_CN, pages say zh-CN


_PATHS = {
    "menu": "M4 6h16M4 12h16M4 18h16",
    "sun": "M12 8a4 4 0 1 0 0 8a4 4 0 1 0 0-8M12 2v3M12 19v3M2 12h3M19 12h3M5 5l2 2M17 17l2 2M19 5l-2 2M7 17l-2 2",
    "moon": "M20 14.5A8.5 8.5 0 0 1 9.5 4a8.5 8.5 0 1 0 10.5 10.5",
    "auto": "M9 8a4 4 0 0 0 0 8M9 2v2M3 5l2 2M1 12h2M3 19l2-2M9 20v2M14 4a8 8 0 0 1 0 16a11 11 0 0 0 0-16",
}


def icon(name: str) -> Markup:
    """A picture of one line for a button."""
    path = f'<path d="{_PATHS[name]}"/>'
    return Markup(f'<svg class="icon i-{name}" viewBox="0 0 24 24" aria-hidden="true">{path}</svg>')
