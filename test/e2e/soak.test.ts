import { describe, expect, it } from 'vitest'
import { formOf, planOf, TAKEOVERS } from '../soak/plan.ts'
import { soak } from '../soak/soak.ts'

const EVENTS = 1_000
const KILLS = 7

describe('a log whose writers and readers are killed while the service injects every fault', () => {
  it('loses nothing, records and applies nothing twice, and its process has what its entries give', async () => {
    const result = await soak({ events: EVENTS, kills: KILLS, seed: 1 })

    expect(result).toMatchObject({
      lost: 0,
      doubled_effects: 0,
      recorded_twice: 0,
      process_diverged: 0,
      cursor_ahead: 0,
      fenced: TAKEOVERS,
      kills: KILLS + 1,
    })
    expect(result.events).toBeGreaterThanOrEqual(EVENTS)
    expect(result.revisions).toBeGreaterThan(0)
    expect(result.trimmed).toBeGreaterThan(0)
    expect(result.redelivered).toBeLessThanOrEqual((KILLS + TAKEOVERS) * result.concurrency)
    expect(Object.keys(result.faults).toSorted()).toEqual([...formsIn(1), 'restart'].toSorted())
    expect(Object.entries(result.faults).filter(([, struck]) => struck < 1)).toEqual([])
  }, 180_000)

  it('is reported when a consumer saves its cursor before the handler has ended', async () => {
    const result = await soak({
      events: 150,
      kills: 4,
      seed: 1,
      mutant: 'cursor-saved-early',
      // Whatever the speed of the machine, one looks while a handler runs.
      slowest: 2_000,
    })

    expect(result.cursor_ahead).toBeGreaterThan(0)
  }, 180_000)

  it('is reported when a lock alone keeps two writers apart', async () => {
    const result = await soak({ events: 200, kills: 0, seed: 1, mutant: 'fence-unchecked' })

    expect(result.unfenced).toBeGreaterThan(0)
  }, 180_000)
})

describe('the plan of a soak', () => {
  it('is the same for the same seed, and another for another', () => {
    expect(planOf(20_000, 30, 7)).toEqual(planOf(20_000, 30, 7))
    expect(planOf(20_000, 30, 7)).not.toEqual(planOf(20_000, 30, 8))
  })

  it.each([1, 2, 3, 4])('has every kind of fault in each of its forms, with seed %i', (seed) => {
    expect(formsIn(seed)).toEqual([
      'close',
      'close at once',
      'cut character',
      'cut chunk',
      'cut event',
      'cut line',
      'delay',
      'deleted-group',
      'gzip',
      'invalid-cursor',
      'lose',
      'lose-answer',
      'malformed',
      'reorder',
      'repeat',
      'repeat-events',
      'slow',
      'stall',
      'status 408',
      'status 429 seconds',
      'status 500',
      'status 502',
      'status 503',
      'status 503 date',
      'status 504',
      'truncated',
      'wrong-type',
    ])
  })

  it('has the given number of kills, spread over the events, and a restart at the end', () => {
    const plan = planOf(20_000, 30, 1)

    const kills = plan.filter(({ what }) => what === 'kill').map(({ at }) => at)
    expect(kills).toHaveLength(30)
    expect(kills.filter((at) => at < 8_000).length).toBeGreaterThan(10)
    expect(plan.at(-1)).toEqual({ at: 16_000, what: 'restart' })
  })
})

/** The forms of the faults that a soak with this seed plans, each once. */
function formsIn(seed: number): string[] {
  const faults = planOf(EVENTS, KILLS, seed).flatMap((step) => (step.what === 'fault' ? [step.fault] : []))
  return [...new Set(faults.map(formOf))].toSorted()
}
