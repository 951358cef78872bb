import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { LogStore } from '../../../src/log/store/contract.ts'
import { idsOf } from './fixture.ts'
import type { Open } from './fixture.ts'

const put = (log: LogStore, id: string) => log.inbox.put({ id, timestamp: 1_760_000_000, payload: {} }, '{}')

/** Appends nothing but that these are done. */
async function done(log: LogStore, ids: readonly string[]): Promise<void> {
  const fence = await log.claim('inbox')
  await log.append([{ fence, expect: null, entries: [] }], ids)
  await log.release(fence)
}

/** Webhooks between their receipt and their recording, against a model. */
export function describeInboxModel(name: string, open: Open): void {
  describe(`${name}: its inbox`, () => {
    it('agrees with a model, whatever is put and done by whom', async () => {
      const ids = fc.integer({ min: 0, max: 12 }).map((n) => `msg_${n}`)
      const steps = fc.array(
        fc.record({ kind: fc.constantFrom('put', 'put', 'done'), ids: fc.array(ids), by: fc.nat(1) }),
        { maxLength: 20 },
      )
      await fc.assert(
        fc.asyncProperty(steps, async (run) => {
          const { log, connect } = await open(undefined, { maxDeliveries: 5 })
          const logs = [log, await connect('second')]
          const known = new Set<string>()
          let pending: string[] = []
          for (const { kind, ids: each, by } of run) {
            const store = logs[by] ?? log
            if (kind === 'done') {
              await done(store, each)
              pending = pending.filter((id) => !each.includes(id))
              continue
            }
            const expected = each.map((id) => {
              if (known.has(id)) return 'duplicate'
              if (pending.length >= 5) return 'full'
              known.add(id)
              pending.push(id)
              return 'stored'
            })
            expect(await Promise.all(each.map((id) => put(store, id)))).toEqual(expected)
          }
          expect(idsOf(await (logs[1] ?? log).inbox.pending(null, 100))).toEqual(pending)
        }),
        { numRuns: 25 },
      )
    })
  })
}
