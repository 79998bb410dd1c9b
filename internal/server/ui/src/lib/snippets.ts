/** Programs that send the same request. */
export interface Snippets {
  curl: string
  python: string
  javascript: string
}

const quoteShell = (s: string) => `'${s.replace(/'/g, `'\\''`)}'`

/** JSON as a literal of Python. */
export function pythonLiteral(value: unknown, indent = ''): string {
  if (value === null || value === undefined) return 'None'
  if (value === true) return 'True'
  if (value === false) return 'False'
  const deeper = `${indent}    `
  if (Array.isArray(value)) {
    return value.length ? `[\n${value.map((v) => deeper + pythonLiteral(v, deeper)).join(',\n')},\n${indent}]` : '[]'
  }
  if (typeof value === 'object') {
    const entries = Object.entries(value)
    return entries.length ? `{\n${entries.map(([k, v]) => `${deeper}${JSON.stringify(k)}: ${pythonLiteral(v, deeper)}`).join(',\n')},\n${indent}}` : '{}'
  }
  return JSON.stringify(value)
}

/** The request of a form in three languages. The key is read from the environment. */
export function snippetsOf(url: string, body: unknown, authenticated: boolean): Snippets {
  const json = JSON.stringify(body, null, 2)
  const curl = [`curl ${quoteShell(url)}`, `-H 'Content-Type: application/json'`]
  if (authenticated) curl.push('-H "Authorization: Bearer $QTYPE_API_KEY"')
  curl.push(`-d ${quoteShell(json)}`)
  const pyHeaders = authenticated ? `    headers={"Authorization": "Bearer " + os.environ["QTYPE_API_KEY"]},\n` : ''
  const jsAuth = authenticated ? `\n    Authorization: \`Bearer \${process.env.QTYPE_API_KEY}\`,` : ''
  return {
    curl: curl.join(' \\\n  '),
    python: `${authenticated ? 'import os\n' : ''}import requests

response = requests.post(
    ${JSON.stringify(url)},
${pyHeaders}    json=${pythonLiteral(body, '    ')},
)
response.raise_for_status()
print(response.json()["outputs"])`,
    javascript: `const response = await fetch(${JSON.stringify(url)}, {
  method: "POST",
  headers: {
    "Content-Type": "application/json",${jsAuth}
  },
  body: JSON.stringify(${json.replace(/\n/g, '\n  ')}),
});
if (!response.ok) throw new Error(await response.text());
console.log((await response.json()).outputs);`,
  }
}
