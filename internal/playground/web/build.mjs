// Bundles the scripts of the page to dist. They are classic scripts, because browsers load
// no modules from a folder of files.
import { copyFileSync, mkdirSync, rmSync } from 'node:fs'
import { build } from 'esbuild'

rmSync('dist', { recursive: true, force: true })
mkdirSync('dist')
await build({
  entryPoints: ['src/playground.ts', 'src/worker.ts'],
  bundle: true, minify: true, format: 'iife', target: 'es2022', outdir: 'dist', legalComments: 'none',
})
for (const name of ['index.html', 'playground.css']) copyFileSync(`src/${name}`, `dist/${name}`)
