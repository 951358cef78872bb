import { describe, expect, it } from 'vitest'
import { crowd } from './crowd.ts'

describe('a gateway with many clients of which some never read', () => {
  it('sends each row once to each reader, encodes it once a shape, and keeps nothing for the others', async () => {
    const result = await crowd({ clients: 60, stalled: 10, events: 60, bytes: 250_000, interval: 5 })

    expect(result.received).toBe(result.expected)
    expect(result.late_received).toBe(60)
    expect(result.encoded_per_event).toBeLessThanOrEqual(1)
    expect(result.stalled_taken_mb).toBeLessThan(result.stalled_offered_mb * 0.8)
    // The view has 15 MB of rows. A queue for each of those that do not read would have more than 50 MB.
    expect(result.used_over_idle_mb).toBeLessThan(50)
  }, 60_000)
})
