import { expect, it } from 'vitest'
import { temporaryFolder } from '../running.ts'
import { killService } from './kills.ts'

it(
  'a service that is killed keeps and ends all that it acknowledged, once',
  { timeout: 120_000 },
  async () => {
    const result = await killService({ folder: await temporaryFolder(), kills: 3, seed: 11 })

    expect(result.problems).toEqual([])
    expect(Object.values(result.acknowledged).every((count) => count > 0)).toBe(true)
    expect(result.kills_at_commits).toBe(1)
    expect(result.executions).toBeGreaterThan(0)
  },
)
