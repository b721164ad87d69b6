// Pictures that a reader keeps of a page.

/** What draws pictures, as kit.js asks for it: the page brings it. */
export const keepOfPage = async () => window.minimindFigures.keep();
