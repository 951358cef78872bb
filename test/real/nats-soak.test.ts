import { beforeAll, describe, expect, it } from 'vitest'
import { natsAuditOf } from '../soak/nats/audit.ts'
import type { NatsAudit, NatsEvidence } from '../soak/nats/audit.ts'
import { natsComplaints } from '../soak/nats/complaints.ts'
import { soakNats } from '../soak/nats/soak.ts'
import type { NatsSoakResult } from '../soak/nats/soak.ts'

/** Its many processes take long to start on a slow machine, in ms. */
const PATIENCE = 900_000
const LOG = { lease: 1_000, partitions: 4 }
const PLAN = { events: 160, kills: 2, stops: 1, serverKills: 1, faultRounds: 1, seed: 1 }

let result: NatsSoakResult
let evidence: NatsEvidence

beforeAll(async () => {
  ;({ result, evidence } = await soakNats({ ...PLAN, ...LOG, workers: 2, groups: 2, monitors: 2 }))
}, PATIENCE)

it('workers that are killed and suspended, over a crash of the server and with every fault of the service, lose, double and reorder nothing', () => {
  // Which of the faults struck depends on how fast it all was.
  expect(natsComplaints({ ...result, faults: {} }, PLAN)).toEqual([])
  expect(result.events).toBeGreaterThanOrEqual(PLAN.events)
})

describe('the audit', () => {
  const audited = (changes: Partial<NatsEvidence>): NatsAudit => natsAuditOf({ ...evidence, ...changes })
  /** An entry of a monitor after the first one of that monitor. */
  const later = () => {
    const entries = evidence.entries.filter(
      ({ source, via, revision }) => source.startsWith('/v1/monitors/') && via === 'poll' && revision === 1,
    )
    const [first] = entries
    const second = entries.find(({ source, id }) => source === first?.source && id !== first.id)
    if (first === undefined || second === undefined) throw new Error('no monitor has two entries')
    return { first, second }
  }

  it('finds an event without an entry', () => {
    const { first } = later()
    expect(audited({ entries: evidence.entries.filter((entry) => entry !== first) }).lost).toBe(1)
  })

  it('finds an entry that is there twice, and one that is recorded again with another revision', () => {
    const { first } = later()
    expect(audited({ entries: [...evidence.entries, first] })).toMatchObject({
      doubled: 1,
      recorded_twice: 1,
    })
    const again = { ...first, revision: 2 }
    expect(audited({ entries: [...evidence.entries, again] })).toMatchObject({
      doubled: 0,
      recorded_twice: 1,
    })
  })

  it('finds entries of a source in another order than that of the service', () => {
    const { first, second } = later()
    const entries = evidence.entries.map((entry) => {
      if (entry === first) return second
      return entry === second ? first : entry
    })
    expect(audited({ entries }).reordered).toBeGreaterThan(0)
  })

  it('finds a state and an output of the process that its entries do not give, and a state that lacks an event of the service', () => {
    const [[key, state] = ['', undefined]] = evidence.states
    if (state === undefined) throw new Error('the process has no state')
    const states = new Map(evidence.states).set(key, { ...state, hash: state.hash ^ 1 })
    expect(audited({ states }).process_diverged).toBe(1)
    const output = evidence.entries.find(({ source }) => source === '/processes/totals')
    const entries = evidence.entries.filter((entry) => entry !== output)
    expect(audited({ entries }).process_diverged).toBeGreaterThan(0)
    const { records } = evidence
    const more = { run_id: 'run_0', taskgroup_id: null, status: 'completed' } as const
    const sent = { ...records, runs: [...records.runs, more] }
    expect(audited({ records: sent })).toMatchObject({ lost: 1, process_diverged: 1 })
  })

  it('finds an entry that was not handled, one that was acknowledged before, and an effect that came twice', () => {
    const [effect = ''] = evidence.booked
    expect(audited({ booked: evidence.booked.slice(1) }).unhandled).toBe(1)
    expect(audited({ billed: evidence.billed.filter((each) => each !== effect) }).unhandled).toBe(1)
    expect(audited({ ahead: 1 }).acknowledged_unhandled).toBe(1)
    expect(audited({ booked: [...evidence.booked, effect] }).doubled_effects).toBe(1)
  })
})

it.each([
  ['append what the log has', 'duplicates-appended', ['recorded_twice']],
  // A reader may pass entries as soon as they are deleted, so that they were acknowledged when the soak looks.
  ['delete what a reader needs', 'readers-unseen', ['deleted_early', 'acknowledged_unhandled']],
] as const)(
  'the soak finds workers that %s',
  async (_, mutant, counters) => {
    const few = { events: 60, kills: 0, stops: 0, serverKills: 0, faultRounds: 0 }
    const mutated = await soakNats({ ...PLAN, ...few, ...LOG, workers: 1, groups: 1, monitors: 1, mutant })
    expect(Math.max(...counters.map((counter) => mutated.result[counter]))).toBeGreaterThan(0)
  },
  PATIENCE,
)
