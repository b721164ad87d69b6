"""Fixtures that several test modules share. What they import is imported only where they are used."""

import functools
import http.server
import os
import threading
from pathlib import Path

import pytest
from browser import SIZE, launch, rest
from playwright.sync_api import sync_playwright


@pytest.fixture(scope="module")
def browser():
    """Chromium, one for each test module: left running, playwright's event loop would hinder the notebooks' kernels."""
    from browser import launch
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = launch(playwright)
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def module_page(browser):
    """One page for each test module: a page of its own would be twice the work of what most tests do on it."""
    context = browser.new_context(viewport=SIZE)
    yield context.new_page()
    context.close()


@pytest.fixture
def page(module_page):
    """The page of the module, without the wishes of the test before; `serve` puts another document on it."""
    rest(module_page)
    return module_page
