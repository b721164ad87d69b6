// Excerpts of the pages that were found are fetched, which browsers refuse to a page from file://.
if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
