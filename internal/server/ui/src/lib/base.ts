/** The address that all requests and links are relative to. The server sets it in the page's base element. */
export const baseURL = (): URL => new URL('.', document.baseURI)

/** The absolute address of a path of the API, such as "flows/talk". */
export const apiURL = (path: string): string => new URL(path.replace(/^\//, ''), baseURL()).href
