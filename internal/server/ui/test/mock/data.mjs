// The application that the mock server serves.

const text = (title, more = {}) => ({ title, type: 'string', qtype_type: 'text', ...more })

export const app = {
  id: 'support_inbox',
  description: 'Answers the customers of Harbour Lane Books, a bookshop, and labels their messages.',
  version: '0.2.0',
  flows: 4,
  authentication: 'none',
  principal: null,
  simulated: ['assistant'],
  reload_error: null,
  features: { batch: true, traces: true, feedback: true, tests: true },
}

const address = {
  type: 'object',
  qtype_type: 'Address',
  properties: { street: text('street'), city: text('city'), zip: text('zip') },
  required: ['street', 'city'],
}

export const flows = [
  {
    id: 'triage',
    description: 'Talks with one customer about orders, parcels and refunds.',
    interface_type: 'Conversational',
    session_inputs: [],
    endpoints: { rest: '/flows/triage', stream: '/flows/triage/stream' },
    input_schema: { title: 'triageRequest', type: 'object', required: ['message'], properties: { message: { title: 'message', qtype_type: 'ChatMessage', anyOf: [{ type: 'string' }, { type: 'object' }] } } },
    output_schema: { title: 'triageResult', type: 'object', properties: { reply: text('reply') } },
    examples: ['Where is my parcel? The order is HL-8812.', 'Show me a table of delivery times.', 'I want a refund for order HL-8812.'],
    feedback: { type: 'thumbs', explanation: false },
    telemetry_enabled: true,
  },
  {
    id: 'classify',
    description: 'Labels one customer message.',
    interface_type: null,
    session_inputs: [],
    endpoints: { rest: '/flows/classify', stream: null },
    input_schema: {
      title: 'classifyRequest',
      type: 'object',
      required: ['message', 'urgent'],
      properties: {
        message: text('message', { 'x-ui': { widget: 'textarea' }, description: 'What the customer wrote.' }),
        urgent: { title: 'urgent', type: 'boolean', qtype_type: 'boolean' },
        language: { ...text('language'), enum: ['en', 'de', 'fr'] },
      },
    },
    output_schema: { title: 'classifyResult', type: 'object', properties: { label: text('label'), reply: text('reply') } },
    examples: ['The parcel arrived crushed and two books are torn.', 'The e-book does not open on my device.'],
    feedback: { type: 'rating', scale: 5, explanation: true },
    telemetry_enabled: true,
  },
  {
    id: 'order',
    description: 'Takes an order with every type of value.',
    interface_type: null,
    endpoints: { rest: '/flows/order', stream: null },
    input_schema: {
      title: 'orderRequest',
      type: 'object',
      required: ['customer', 'quantity', 'express', 'items', 'ship_to'],
      properties: {
        customer: text('customer', { 'x-ui': { placeholder: 'Ada Lovelace' } }),
        quantity: { title: 'quantity', type: 'integer', qtype_type: 'int', minimum: 1 },
        discount: { title: 'discount', anyOf: [{ type: 'number' }, { type: 'null' }], qtype_type: 'float?' },
        express: { title: 'express', type: 'boolean', qtype_type: 'boolean' },
        due: { title: 'due', type: ['string', 'null'], format: 'date', qtype_type: 'date?' },
        pickup: { title: 'pickup', type: ['string', 'null'], format: 'time', qtype_type: 'time?' },
        ordered: { title: 'ordered', type: ['string', 'null'], format: 'date-time', qtype_type: 'datetime?' },
        paper: { ...text('paper'), enum: ['plain', 'gift'] },
        items: { title: 'items', type: 'array', qtype_type: 'list[text]', items: text('items') },
        ship_to: { title: 'ship_to', $ref: '#/$defs/Address', qtype_type: 'Address' },
        cover: { title: 'cover', anyOf: [{ type: 'string', format: 'binary' }, { type: 'null' }], qtype_type: 'image?', 'x-ui': { widget: 'file', accept: 'image/png,image/jpeg' } },
      },
      $defs: { Address: address },
    },
    output_schema: { title: 'orderResult', type: 'object', properties: { number: text('number'), lines: { type: 'array', items: text('line') }, total: { type: 'number' } } },
    examples: [],
    feedback: null,
  },
  {
    id: 'complaint',
    description: 'Pays a refund after a decision.',
    interface_type: null,
    endpoints: { rest: '/flows/complaint', stream: null },
    input_schema: { title: 'complaintRequest', type: 'object', required: ['order', 'amount'], properties: { order: { title: 'order', type: 'integer', qtype_type: 'int' }, amount: { title: 'amount', type: 'number', qtype_type: 'float' } } },
    output_schema: { title: 'complaintResult', type: 'object', properties: { pay: { type: 'boolean' }, note: text('note') } },
    examples: [],
    feedback: { type: 'category', categories: ['helpful', 'wrong', 'too long'], allow_multiple: true, explanation: false },
  },
]

const node = (id, type, reads, writes, uses, yaml, line) => ({ id, type, label: id, reads, writes, uses, yaml, file: 'app.qtype.yaml', line })

export const graph = {
  nodes: [
    node('draft', 'LLMInference', ['message'], ['reply'], [{ kind: 'model', id: 'assistant' }, { kind: 'memory', id: 'chat_memory' }], '- type: LLMInference\n  id: draft\n  model: assistant\n  memory: chat_memory\n  system_message: You answer for a bookshop.\n  inputs: [message]\n  outputs: [reply]\n', 24),
    node('ask_label', 'PromptTemplate', ['message'], ['label_question'], [], '- type: PromptTemplate\n  id: ask_label\n  template: |-\n    Label the message: {message}\n  inputs: [message]\n  outputs: [label_question]\n', 33),
    node('find_order', 'InvokeTool', ['message'], ['order'], [{ kind: 'tool', id: 'find_order' }], '- type: InvokeTool\n  id: find_order\n  tool: find_order\n', 40),
    node('assign_label', 'LLMInference', ['label_question', 'order'], ['label'], [{ kind: 'model', id: 'assistant' }, { kind: 'memory', id: 'chat_memory' }], '- type: LLMInference\n  id: assign_label\n  model: assistant\n  inputs: [label_question]\n  outputs: [label]\n', 46),
  ],
  edges: [{ from: 'draft', to: 'ask_label' }, { from: 'draft', to: 'find_order' }, { from: 'ask_label', to: 'assign_label' }, { from: 'find_order', to: 'assign_label' }],
  mermaid: 'flowchart TD',
}

const hours = (n) => new Date(Date.now() - n * 3_600_000).toISOString()

/** The conversations that exist at the start. */
export function seedSessions() {
  const s014 = { id: 'c-014', title: 'Where is my parcel?', flow: 'triage', created: hours(3), updated: hours(0.1), run: null, messages: [] }
  const add = (turn, role, body, tokens, status, reason) => {
    const seq = s014.messages.length + 1
    const parts = typeof body === 'string' ? [{ type: 'text', text: body }] : body
    s014.messages.push({ id: `m${seq}`, seq, turn, role, parts, tokens, time: hours(3 - turn * 0.3), status, ...(reason && { reason }) })
  }
  const why = 'over the chat share of 35,000 tokens (token_limit 50,000 × chat_history_token_ratio 0.7); 3,000 had to go, 3,041 went, to the start of a round'
  add(1, 'user', 'Hello, I ordered three books last week. The order number is HL-8812.', 18, 'summarized', why)
  add(1, 'assistant', 'Thank you for writing about order **HL-8812**. How can I help?', 16, 'summarized', why)
  add(2, 'user', 'One is a present. Can you wrap it?', 11, 'summarized', why)
  add(2, 'assistant', 'Of course. I have added a gift wrap to *The Left Hand of Darkness*.', 19, 'summarized', why)
  add(3, 'user', 'Here is a long list of my other orders, please check them all.', 1840, 'evicted', why)
  add(3, 'assistant', 'I went through the list. All orders were delivered, except HL-8812.', 1201, 'evicted', why)
  add(4, 'user', 'Where is my parcel?', 8, 'in_window')
  add(4, 'assistant', [{ type: 'reasoning', text: 'The customer asks for a parcel. I look up the order first.', state: 'done' }, { type: 'tool-find_order', toolCallId: 'call-1', state: 'input-available', input: { id: 8812 } }], 19, 'in_window')
  add(4, 'tool', [{ type: 'tool-find_order', toolCallId: 'call-1', state: 'output-available', output: { status: 'in transit', due: '2026-11-23' } }], 24, 'in_window')
  add(4, 'assistant', 'It is in transit and due on **Monday, 23 November**.', 14, 'in_window')
  s014.flushes = [{ time: hours(1.8), turn: 4, from: 1, to: 6, messages: 6, tokens: 3041, reason: why }]
  s014.summary = 'The customer ordered three books (HL-8812), one of them gift-wrapped. All earlier orders were delivered.'
  const plain = (id, title, age, question, reply) => ({
    id, title, flow: 'triage', created: hours(age), updated: hours(age), run: null, flushes: [],
    messages: [
      { id: `${id}-1`, seq: 1, turn: 1, role: 'user', parts: [{ type: 'text', text: question }], tokens: 9, time: hours(age), status: 'in_window' },
      { id: `${id}-2`, seq: 2, turn: 1, role: 'assistant', parts: [{ type: 'text', text: reply }], tokens: 21, time: hours(age), status: 'in_window' },
    ],
  })
  return new Map([
    s014,
    plain('c-002', 'Damaged book', 2, 'A book arrived damaged.', 'I am sorry that it reached you like this. We will send a new copy.'),
    plain('c-031', 'Refund', 26, 'When do I get my refund?', 'A refund takes five working days.'),
    plain('c-027', 'Gift card', 80, 'How long is a gift card valid?', 'Gift cards are good for three years, on every book.'),
  ].map((s) => [s.id, s]))
}
