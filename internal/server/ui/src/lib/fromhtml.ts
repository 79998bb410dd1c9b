/** Parses HTML without the browser, which would report the styles of formulas to the content security policy. */
export { fromHtml as fromHtmlIsomorphic } from 'hast-util-from-html'
