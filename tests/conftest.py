"""Fixtures that several test modules share. What they import is imported only where they are used."""

import pytest


@pytest.fixture(scope="module")
def browser():
    """Chromium, one for each test module: left running, playwright's event loop would hinder the notebooks' kernels."""
    from browser import launch
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = launch(playwright)
        yield chromium
        chromium.close()


@pytest.fixture
def page(browser):
    """An empty page in a context of its own."""
    context = browser.new_context()
    yield context.new_page()
    context.close()
