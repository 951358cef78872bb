import { defineConfig, mergeConfig } from 'vitest/config'
import { BaseSequencer } from 'vitest/node'
import type { TestSpecification } from 'vitest/node'
import base from '../../vitest.config.ts'

/** The files that take longest. Their length does not say so, by which vitest orders the files of a fresh clone. */
const LONGEST = ['dashboard-page', 'typescript', 'mcp', 'dashboard']

/** Starts the longest files first: one that starts last would run alone at the end. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    // oxlint-disable-next-line unicorn/no-array-sort -- Not that of an array.
    const others = await super.sort(files)
    const rank = ({ moduleId }: TestSpecification) => {
      const index = LONGEST.findIndex((name) => moduleId.endsWith(`/${name}.test.ts`))
      return index === -1 ? LONGEST.length : index
    }
    return others.toSorted((a, b) => rank(a) - rank(b))
  }
}

export default defineConfig({
  ...mergeConfig(base, {}),
  // Only a failure uses these up: a slow machine may take many times as long as a fast one.
  test: {
    include: ['test/real/*.test.ts'],
    globalSetup: 'test/support/builds.setup.ts',
    testTimeout: 180_000,
    hookTimeout: 180_000,
    maxWorkers: 2,
    sequence: { sequencer: LongestFirst },
  },
})
