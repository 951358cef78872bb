import { resolve } from 'node:path'
import { defineConfig } from 'vitest/config'

// Tests import the package by its own name, as users do; this condition leads to the sources.
const conditions = ['rivulet-source', 'node', 'import', 'default']

const tests = 'test/**/*.test.{ts,tsx}'
// Takes runtimes that are no dependencies of the package, `npm run test:real`, or a mount: `npm run test:disk`.
const elsewhere = ['test/real/**', 'test/disk/**']

/**
 * Tests with a process of their own: they replace modules, have a page, measure what a process uses, or import a module with a hook,
 * which would end with the first file that imports it.
 */
const apart = [
  'test/{dashboard,react}/**/*.test.{ts,tsx}',
  'test/live/chunks.test.ts',
  'test/interface/endpoints.test.ts',
  'test/service/live-documents/*.test.ts',
  'test/service/openapi/{document,held-answers}.test.ts',
  'test/e2e/{hostile-work,month,resources,scaled-clock,slow-consumer,soak}.test.ts',
  'test/examples.test.ts',
  'test/webhooks/bodies.test.ts',
]

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    // The processes that tests start share what Node has compiled, since compilation is half of their start.
    env: { NODE_COMPILE_CACHE: resolve(import.meta.dirname, 'node_modules/.cache/compiled') },
    // Only a failure uses these up, and a slow machine may take many times as long as a fast one.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    expect: { poll: { timeout: 15_000 } },
    // Much of a test's time is spent waiting for sockets and child processes.
    maxWorkers: 2,
    setupFiles: ['test/support/held-answers.setup.ts'],
    projects: [
      // Most of a small file's time is the start of its process and the load of the library, so files share both.
      {
        extends: true,
        test: { name: 'shared', include: [tests], exclude: [...elsewhere, ...apart], isolate: false },
      },
      { extends: true, test: { name: 'apart', include: apart, exclude: elsewhere } },
    ],
  },
})
