import { describe, expect, it } from 'vitest'
import { fieldsOf } from '@/lib/schema'
import { guessMapping, mapRows, readTable, toCSV } from '@/lib/table'

const fields = fieldsOf({
  type: 'object',
  required: ['message', 'urgent'],
  properties: { message: { type: 'string', qtype_type: 'text' }, urgent: { type: 'boolean', qtype_type: 'boolean' }, order_no: { type: ['integer', 'null'], qtype_type: 'int?' } },
})

describe('readTable', () => {
  it('reads CSV with quotes, line breaks and a byte order mark', () => {
    const t = readTable('a.csv', '\uFEFFmessage,urgent\n"one, two\nthree",yes\n\n')
    expect(t).toEqual({ columns: ['message', 'urgent'], rows: [{ message: 'one, two\nthree', urgent: 'yes' }] })
  })
  it('reads JSON lines and arrays', () => {
    expect(readTable('a.jsonl', '{"a":1}\n{"b":2}\n').columns).toEqual(['a', 'b'])
    expect(readTable('a.json', '[{"a":1}]').rows).toEqual([{ a: 1 }])
  })
  it('names the line that it cannot read', () => {
    expect(() => readTable('a.jsonl', '{"a":1}\n{oops\n')).toThrow('line 2 is not JSON')
    expect(() => readTable('a.json', '[1]')).toThrow('record 1 is not an object')
    expect(() => readTable('a.csv', 'a,b\n1,2\n3\n')).toThrow('line 3')
  })
})

describe('a mapping', () => {
  it('is guessed from equal names and from the only free column', () => {
    expect(guessMapping(fields, ['Order No', 'text', 'urgent'])).toEqual({ message: 'text', urgent: 'urgent', order_no: 'Order No' })
  })
  it('converts cells and reports those that do not fit', () => {
    const table = readTable('a.csv', 'message,urgent,order_no\nhello,yes,12\nbye,perhaps,x\n')
    const { rows, errors } = mapRows(table, fields, { message: 'message', urgent: 'urgent', order_no: 'order_no' })
    expect(rows[0]).toEqual({ message: 'hello', urgent: true, order_no: 12 })
    expect(errors.map((e) => [e.row, e.input])).toEqual([[1, 'urgent'], [1, 'order_no']])
  })
})

describe('toCSV', () => {
  it('writes objects as JSON and does not write formulas', () => {
    expect(toCSV([{ a: '=1+1', b: { c: 1 }, d: -2 }, { a: null, b: '-2+3' }])).toBe(`a,b,d\r\n"'=1+1","{""c"":1}",-2\r\n,"'-2+3",`)
  })
})
