import { describe, expect, it } from 'vitest'
import { checkValues, fieldsOf, initialValues, parseCell, requestBody } from '@/lib/schema'
import type { Schema } from '@/lib/types'

const schema: Schema = {
  type: 'object',
  required: ['name', 'count', 'tags', 'home', 'note'],
  properties: {
    name: { type: 'string', qtype_type: 'text', 'x-ui': { widget: 'textarea' } },
    count: { type: 'integer', qtype_type: 'int', minimum: 1 },
    price: { anyOf: [{ type: 'number' }, { type: 'null' }], qtype_type: 'float?' },
    done: { type: ['boolean', 'null'], qtype_type: 'boolean?' },
    day: { type: 'string', format: 'date', qtype_type: 'date' },
    at: { type: 'string', format: 'date-time', qtype_type: 'datetime' },
    size: { type: 'string', enum: ['S', 'M'] },
    tags: { type: 'array', items: { type: 'string', qtype_type: 'text' }, qtype_type: 'list[text]' },
    home: { $ref: '#/$defs/Address', qtype_type: 'Address' },
    picture: { type: 'string', format: 'binary', qtype_type: 'image', 'x-ui': { accept: 'image/png' } },
    note: { anyOf: [{ type: 'string' }, { $ref: '#/$defs/Message' }], qtype_type: 'ChatMessage' },
    raw: {},
  },
  $defs: {
    Address: { type: 'object', required: ['city'], properties: { city: { type: 'string' }, next: { anyOf: [{ $ref: '#/$defs/Address' }, { type: 'null' }] } } },
    Message: { type: 'object' },
  },
}
const fields = fieldsOf(schema)
const field = (name: string) => fields.find((f) => f.name === name)!

describe('fieldsOf', () => {
  it('gives each type its control', () => {
    const controls = Object.fromEntries(fields.map((f) => [f.name, f.control]))
    expect(controls).toEqual({ name: 'textarea', count: 'int', price: 'float', done: 'boolean', day: 'date', at: 'datetime', size: 'enum', tags: 'list', home: 'record', picture: 'file', note: 'message', raw: 'json' })
  })
  it('knows which values are optional', () => {
    expect(fields.filter((f) => !f.optional).map((f) => f.name)).toEqual(['name', 'count', 'tags', 'home', 'note'])
  })
  it('ends at a record that contains itself', () => {
    let f = field('home')
    for (let i = 0; i < 5; i++) f = f.fields!.find((x) => x.name === 'next')!
    expect(f.optional).toBe(true)
  })
  it('reads hints, and leaves out the inputs of sessions', () => {
    expect(field('picture').accept).toBe('image/png')
    expect(fieldsOf(schema, ['name']).some((f) => f.name === 'name')).toBe(false)
  })
})

describe('values of a form', () => {
  it('are checked with a pointer to each error', () => {
    const values = { count: 0, tags: ['a', ''], home: {}, note: 'hi', day: '2026-02-31x' }
    expect(checkValues(fields, values)).toEqual({
      '/name': 'A value is required.',
      '/count': 'At least 1 is required.',
      '/tags/1': 'A value is required.',
      '/home/city': 'A value is required.',
      '/day': 'A date such as 2026-03-31 is required.',
    })
  })
  it('are sent without optional ones that are not set', () => {
    expect(requestBody(fields, { name: 'x', count: 2, price: undefined, tags: [], home: { city: 'Porto' }, note: 'n', size: '' })).toEqual({ name: 'x', count: 2, tags: [], home: { city: 'Porto' }, note: 'n' })
  })
  it('start with what an empty form contains', () => {
    expect(initialValues(fields)).toEqual({ tags: [], home: {} })
  })
})

describe('parseCell', () => {
  it.each([
    ['count', ' 12 ', 12],
    ['price', '1e3', 1000],
    ['price', '', undefined],
    ['done', 'Yes', true],
    ['done', '0', false],
    ['size', 'M', 'M'],
    ['tags', '["a","b"]', ['a', 'b']],
    ['tags', 'a; b', ['a', 'b']],
    ['home', '{"city":"Porto"}', { city: 'Porto' }],
    ['name', '007', '007'],
  ])('reads %s from %j', (name, cell, value) => {
    expect(parseCell(field(name), cell)).toEqual({ value })
  })
  it.each([
    ['count', '1.5', /whole number/],
    ['count', 'many', /not a number/],
    ['count', '', /required/],
    ['done', 'maybe', /true or false/],
    ['size', 'XL', /One of S, M/],
    ['home', 'Porto', /not JSON/],
  ])('rejects %s from %j', (name, cell, error) => {
    expect(parseCell(field(name), cell).error).toMatch(error)
  })
})
