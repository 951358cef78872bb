import { resolve } from 'node:path'
import { defineConfig } from 'vitest/config'

// Tests import the package by its own name, as users do; this condition leads to the sources.
const conditions = ['rivulet-source', 'node', 'import', 'default']

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    include: ['test/**/*.test.{ts,tsx}'],
    // Takes runtimes that are no dependencies of the package, `npm run test:real`, or a mount: `npm run test:disk`.
    exclude: ['test/real/**', 'test/disk/**'],
    // The processes that tests start share what Node has compiled, since compilation is half of their start.
    env: { NODE_COMPILE_CACHE: resolve(import.meta.dirname, 'node_modules/.cache/compiled') },
    // Only a failure uses these up, and a slow machine may take many times as long as a fast one.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    expect: { poll: { timeout: 15_000 } },
    // Much of a test's time is spent waiting for sockets and child processes.
    maxWorkers: 2,
    setupFiles: ['test/support/held-answers.setup.ts'],
  },
})
