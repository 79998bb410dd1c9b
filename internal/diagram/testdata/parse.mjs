// Parses Mermaid texts: node parse.mjs NODE_MODULES FILE…
import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';

const [modules, ...files] = process.argv.slice(2);
const require = createRequire(modules + '/');
const { JSDOM } = require('jsdom');
const dom = new JSDOM('<!doctype html>');
globalThis.window = dom.window;
globalThis.document = dom.window.document;
const { default: mermaid } = await import(pathToFileURL(modules + '/mermaid/dist/mermaid.core.mjs').href);
for (const file of files) {
  const { diagramType } = await mermaid.parse(readFileSync(file, 'utf8'));
  console.log(diagramType);
}
