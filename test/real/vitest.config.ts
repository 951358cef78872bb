import { defineConfig, mergeConfig } from 'vitest/config'
import base from '../../vitest.config.ts'

export default defineConfig({
  ...mergeConfig(base, {}),
  // Only a failure uses these up: a slow machine may take many times as long as a fast one.
  test: {
    include: ['test/real/*.test.ts'],
    globalSetup: 'test/support/builds.setup.ts',
    testTimeout: 180_000,
    hookTimeout: 180_000,
    maxWorkers: 2,
  },
})
