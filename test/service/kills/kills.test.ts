import { expect, it } from 'vitest'
import { temporaryFolder } from '../running.ts'
import { killService } from './kills.ts'

it(
  'a service that is killed keeps and ends all that it acknowledged, once',
  { timeout: 120_000 },
  async () => {
    const result = await killService({ folder: await temporaryFolder(), kills: 4, seed: 3 })

    expect(result.problems).toEqual([])
    expect(Object.values(result.acknowledged).every((count) => count > 0)).toBe(true)
    expect(result.executions).toBeGreaterThan(0)
  },
)
