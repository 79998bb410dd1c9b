/** A text that a page passes to the input of a flow's next page. */
const prompts = new Map<string, string>()

export const setPrompt = (flow: string, text: string) => void prompts.set(flow, text)

/** Returns the text for a flow and removes it. */
export function takePrompt(flow: string): string {
  const text = prompts.get(flow) ?? ''
  prompts.delete(flow)
  return text
}

/** The message of a turn that is not stored yet, so that it survives a reload of the page. */
/**
 * Keeps the messages of a conversation without a memory in this tab: the server does not
 * store them.
 */
const messagesKey = (session: string) => `qtype.messages.${session}`
export const keepMessages = (session: string, messages: unknown[]) => {
  try {
    sessionStorage.setItem(messagesKey(session), JSON.stringify(messages))
  } catch {
    // Too many or too large messages are lost when the page is reloaded.
  }
}
export const forgetMessages = (session: string) => sessionStorage.removeItem(messagesKey(session))
export const keptMessages = <T,>(session: string): T[] => {
  try {
    return JSON.parse(sessionStorage.getItem(messagesKey(session)) ?? '[]')
  } catch {
    return []
  }
}

const pendingKey = (session: string) => `qtype.pending.${session}`
export const storePending = (session: string, message: unknown) => {
  try {
    sessionStorage.setItem(pendingKey(session), JSON.stringify(message))
  } catch {
    // Large attachments do not fit; the message then appears again when the turn is stored.
  }
}
export const clearPending = (session: string) => sessionStorage.removeItem(pendingKey(session))
export function readPending<T>(session: string): T | undefined {
  try {
    return JSON.parse(sessionStorage.getItem(pendingKey(session)) ?? 'null') ?? undefined
  } catch {
    return undefined
  }
}
