// Lets Node.js 20 load the conformance suite of MCP, which imports fs.globSync of Node.js 22 for a command that no test uses.
import {register} from 'node:module'

register('data:text/javascript,' + encodeURIComponent(`
const fs = 'data:text/javascript,export * from "node:fs"; export const globSync = undefined'
export const resolve = (name, context, next) =>
  name === 'fs' && context.parentURL.includes('/conformance/') ? {url: fs, shortCircuit: true} : next(name, context)
`))
