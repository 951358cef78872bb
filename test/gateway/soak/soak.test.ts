import { describe, expect, it } from 'vitest'
import { scratchFile } from '../../log/sqlite/scratch.ts'
import { soakGateway } from './soak.ts'

describe('a browser behind an unreliable network', () => {
  it('has each row of the log in the end, however often the gateway is killed', async () => {
    const result = await soakGateway({ file: scratchFile(), events: 600, kills: 1, seed: 1, bytes: 4_000 })

    expect(result).toMatchObject({ kills: 1, wrong_in_log: 0, wrong_in_browser: 0, backwards: 0 })
    expect(result.rows).toBeGreaterThan(300)
    expect(result.cuts + result.stalls).toBeGreaterThan(0)
  }, 60_000)

  it('has each row also where retention deletes entries meanwhile, which waits for the views', async () => {
    const result = await soakGateway({
      file: scratchFile(),
      events: 600,
      kills: 1,
      seed: 2,
      bytes: 4_000,
      keep: 50,
    })

    expect(result).toMatchObject({ wrong_in_log: 0, wrong_in_browser: 0, backwards: 0 })
    expect(result).toMatchObject({ missed: 0, silent: 0 })
    expect(result.deleted).toBeGreaterThan(50)
  }, 60_000)

  it('has each row of the log, and says that it misses some, where retention does not wait for the views', async () => {
    const result = await soakGateway({
      file: scratchFile(),
      events: 600,
      kills: 1,
      seed: 2,
      bytes: 4_000,
      keep: 50,
      overtakes: true,
    })

    expect(result).toMatchObject({ wrong_in_log: 0, wrong_in_browser: 0, silent: 0 })
    expect(result.missed).toBeGreaterThan(0)
  }, 60_000)
})
