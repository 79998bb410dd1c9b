import bash from 'highlight.js/lib/languages/bash'
import css from 'highlight.js/lib/languages/css'
import diff from 'highlight.js/lib/languages/diff'
import go from 'highlight.js/lib/languages/go'
import java from 'highlight.js/lib/languages/java'
import javascript from 'highlight.js/lib/languages/javascript'
import json from 'highlight.js/lib/languages/json'
import markdown from 'highlight.js/lib/languages/markdown'
import python from 'highlight.js/lib/languages/python'
import rust from 'highlight.js/lib/languages/rust'
import sql from 'highlight.js/lib/languages/sql'
import typescript from 'highlight.js/lib/languages/typescript'
import xml from 'highlight.js/lib/languages/xml'
import yaml from 'highlight.js/lib/languages/yaml'
import { createLowlight } from 'lowlight'

const lowlight = createLowlight({ bash, css, diff, go, java, javascript, json, markdown, python, rust, sql, typescript, xml, yaml })
lowlight.registerAlias({ javascript: ['js', 'jsx'], typescript: ['ts', 'tsx'], python: ['py'], bash: ['sh', 'shell', 'console'], xml: ['html', 'svg'], yaml: ['yml'], rust: ['rs'], markdown: ['md'] })

/** The highlighted nodes of a code, or undefined for an unknown language. */
export function highlight(text: string, language: string): unknown[] | undefined {
  if (!lowlight.registered(language)) return undefined
  return lowlight.highlight(language, text).children
}
