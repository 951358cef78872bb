import { expect, it } from 'vitest'
import { planOf } from '../../bench/soak/plan.ts'
import { soak } from '../../bench/soak/soak.ts'

it('loses nothing and doubles no effect while it is killed and the service fails in every way it can', async () => {
  const result = await soak({ events: 2_000, kills: 5, seed: 1 })

  expect(result).toMatchObject({ lost: 0, doubled_effects: 0, checkpoint_ahead: 0, kills: 5 })
  expect(result.events).toBeGreaterThanOrEqual(2_000)
  expect(result.redelivered).toBeLessThanOrEqual(result.kills * result.concurrency)
}, 90_000)

it('plans the same for the same seed', () => {
  expect(planOf(20_000, 30, 7)).toEqual(planOf(20_000, 30, 7))
  expect(planOf(20_000, 30, 7)).not.toEqual(planOf(20_000, 30, 8))
})
