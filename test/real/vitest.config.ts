import { defineConfig, mergeConfig } from 'vitest/config'
import base from '../../vitest.config.ts'

export default defineConfig({
  ...mergeConfig(base, {}),
  test: { include: ['test/real/*.test.ts'], testTimeout: 60_000, hookTimeout: 60_000 },
})
