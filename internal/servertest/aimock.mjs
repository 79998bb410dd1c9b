// Answers of the services of models, by the text of the last message: node aimock.mjs MODULES PORT
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'

const resolve = createRequire(process.argv[2] + '/').resolve
const { LLMock } = await import(pathToFileURL(resolve('@copilotkit/aimock')))
const mock = new LLMock({ port: Number(process.argv[3]), host: '127.0.0.1', chunkSize: 5 })
const usage = { prompt_tokens: 21, completion_tokens: 5, total_tokens: 26, input_tokens: 21, output_tokens: 5, promptTokenCount: 21, candidatesTokenCount: 5, totalTokenCount: 26 }
const calls = [{ id: 'call_0001', name: 'weather', arguments: '{"city":"Köln","days":[1,2]}' }, { id: 'call_0002', name: 'now', arguments: '{}' }]

mock.addFixture({ match: { userMessage: 'call tools', hasToolResult: true }, response: { content: 'Rain at noon.', usage } })
mock.addFixture({ match: { userMessage: 'call tools', hasToolResult: false }, response: { toolCalls: calls, usage } })
mock.onMessage('say hello', { content: 'Good morning, Ädä. 早上好', usage })
mock.onMessage('too long', { content: 'Once upon', finishReason: 'length', usage })
mock.onMessage('blocked', { content: 'I', finishReason: 'content_filter', usage })
mock.onMessage('a mood', { content: '{"mood":"calm"}', usage })
mock.onMessage('busy', { error: { message: 'slow down', type: 'rate_limit_error' }, status: 429, retryAfter: 7 })
mock.onMessage('no key', { error: { message: 'bad key', type: 'authentication_error' }, status: 401 })
mock.onMessage('cut off', { content: 'A text that ends before it is complete.' }, { truncateAfterChunks: 2 })
mock.onEmbedding(/./, { embedding: [0.25, 0.5, -1] })
await mock.start()
