import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import react from '@vitejs/plugin-react'
import tailwind from '@tailwindcss/vite'
import { defineConfig, type Plugin } from 'vite'

// Every supported browser reads woff2, so the other formats of KaTeX's fonts are left out.
const onlyWoff2: Plugin = {
  name: 'only-woff2',
  enforce: 'pre',
  transform(code, id) {
    if (!id.includes('katex') || !id.endsWith('.css')) return null
    return code.replace(/,\s*url\([^)]*\.(?:woff|ttf)\)\s*format\(['"]?(?:woff|truetype)['"]?\)/g, '')
  },
}

// The program has the files as it sends them. index.html is changed for each page, and fonts are compressed already.
const compressed: Plugin = {
  name: 'compressed',
  apply: 'build',
  closeBundle() {
    for (const name of readdirSync('dist', { recursive: true }) as string[]) {
      if (!/\.(js|css|svg)$/.test(name)) continue
      const path = join('dist', name)
      writeFileSync(`${path}.gz`, gzipSync(readFileSync(path), { level: 9 }))
      rmSync(path)
    }
  },
}

const source = (path: string) => fileURLToPath(new URL(path, import.meta.url))

export default defineConfig({
  base: './',
  plugins: [onlyWoff2, react(), tailwind(), compressed],
  resolve: {
    alias: {
      '@': source('./src'),
      // The content security policy rejects what the originals do: parse styles and write style elements.
      'hast-util-from-html-isomorphic': source('./src/lib/fromhtml.ts'),
      'react-style-singleton': source('./src/lib/stylesheet.ts'),
    },
  },
  build: {
    target: 'es2022',
    outDir: 'dist',
    emptyOutDir: true,
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: true,
    chunkSizeWarningLimit: 900,
  },
  test: { environment: 'jsdom', include: ['test/unit/**/*.test.{ts,tsx}'] },
} as Parameters<typeof defineConfig>[0])
