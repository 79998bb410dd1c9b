// Helpers for the elements of the page. What comes from a document is always set as text.

/** element returns the element with an id. */
export function element<E extends HTMLElement>(id: string): E {
  return document.getElementById(id) as E
}

/** make makes an element with a class and a text. */
export function make<K extends keyof HTMLElementTagNameMap>(tag: K, className = '', text = ''): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag)
  if (className) made.className = className
  made.textContent = text
  return made
}

/** note shows a text in an element, or hides the element. */
export function note(id: string, text: string) {
  const at = element(id)
  at.textContent = text
  at.hidden = text === ''
}

/** messageOf returns the text of an error. */
export const messageOf = (error: unknown) => (error instanceof Error ? error.message : String(error))
