import { defineConfig, mergeConfig } from 'vitest/config'
import base from '../../vitest.config.ts'

export default defineConfig({
  ...mergeConfig(base, {}),
  test: { include: ['test/disk/*.test.ts'], testTimeout: 60_000 },
})
