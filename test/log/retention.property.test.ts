import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { crash, play, steps } from './retention-model.ts'
import { simulatedStore } from '../../src/log/memory/store.ts'

describe('a log that deletes, against a model', () => {
  it('gives each reader exactly the entries that are left after its position, or a gap, wherever writes crash', async () => {
    const checked = fc.assert(
      fc.asyncProperty(steps, fc.array(fc.nat(9), { maxLength: 40 }), async (script, crashes) => {
        let now = 1_000
        let write = 0
        const pending = [...crashes]
        let isArmed = false
        const store = simulatedStore({
          clock: () => now,
          faults(kind) {
            if (!isArmed || kind === 'claim') return
            write += 1
            if (pending[0] === undefined || write <= pending[0]) return
            pending.shift()
            write = 0
            throw crash
          },
        })
        isArmed = true
        await play(store, script, () => (now += 1))
      }),
      { numRuns: 150 },
    )
    await expect(checked).resolves.toBeUndefined()
  })
})
