import { resolve } from 'node:path'
import { defineConfig, mergeConfig } from 'vitest/config'
import base from '../../../vitest.config.ts'

// The files of this one are not divided.
const { projects: _, ...settings } = base.test ?? {}
const root = resolve(import.meta.dirname, '../../..')
const packages = resolve(import.meta.dirname, 'node_modules')

/** The tests of `rivulet/react`, with React 18 in the place of the newest one. */
export default defineConfig({
  ...mergeConfig(base, {
    resolve: {
      alias: [
        // Node's has no `renderToReadableStream` in React 18.
        { find: 'react-dom/server', replacement: `${packages}/react-dom/server.browser.js` },
        { find: /^(react|react-dom)$/, replacement: `${packages}/$1/index.js` },
        { find: /^(react|react-dom)\/([\w.-]+)$/, replacement: `${packages}/$1/$2.js` },
      ],
    },
  }),
  root,
  test: { ...settings, include: ['test/react/*.test.tsx'], exclude: [] },
})
