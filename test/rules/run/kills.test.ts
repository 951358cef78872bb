import { expect, it } from 'vitest'
import { scratchFile } from '../../log/sqlite/scratch.ts'
import { killRules } from './kills.ts'

it('append the same alerts in the same order, however often they are killed while events are recorded', async () => {
  const result = await killRules({ file: scratchFile(), events: 300, rules: 100, kills: 3, seed: 1 })
  expect(result).toMatchObject({
    kills: 3,
    kills_at_gaps: 2,
    lost: 0,
    doubled: 0,
    wrong: 0,
    same_order: true,
  })
  expect(result.kills_at_commits).toBeGreaterThan(0)
  expect(result.transitions).toBeGreaterThan(100)
  expect(result.of_gaps).toBeGreaterThan(20)
}, 60_000)
