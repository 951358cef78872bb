import { defineConfig } from 'vitest/config'

// Tests import the package by its own name, as users do; this condition leads to the sources.
const conditions = ['rivulet-source', 'node', 'import', 'default']

// These replace modules, or depend on what the whole process has, such as addresses of hosts or the number of timers.
const alone = [
  'test/interface/endpoints.test.ts',
  'test/live/chunks.test.ts',
  'test/protocol/limited-read.test.ts',
  'test/service/live-documents/**',
  'test/service/openapi/**',
]
// Takes runtimes that are no dependencies of the package, `npm run test:real`, or a mount: `npm run test:disk`.
const apart = ['test/real/**', 'test/disk/**']
const include = ['test/**/*.test.{ts,tsx}']

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    projects: [
      // A process for each file, with all of its imports, would take half as long again.
      {
        extends: true,
        test: {
          name: 'together',
          include,
          exclude: [...apart, ...alone],
          isolate: false,
          globalSetup: 'test/support/builds.setup.ts',
        },
      },
      {
        extends: true,
        test: {
          name: 'alone',
          include: alone.map((path) => path.replace(/\*\*$/, '**/*.test.ts')),
          exclude: apart,
        },
      },
    ],
    // Only a failure uses these up, and a slow machine may take many times as long as a fast one.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    expect: { poll: { timeout: 15_000 } },
    // Much of a test's time is spent waiting for sockets and child processes.
    maxWorkers: 2,
    setupFiles: ['test/support/held-answers.setup.ts'],
  },
})
