import { expect, it } from 'vitest'
import { follow } from './tutorial.ts'

// A dozen processes, one after another, and a minute that passes.
const TIMEOUT = 600_000

it(
  'the tutorial of stream processing works as it is written: counts are tested, survive a kill and are computed over the past',
  async () => {
    const outputs = await follow({ page: 'stream-processing.md', folder: 'counts', port: '8123' })

    expect(outputs).toBe(6)
  },
  TIMEOUT,
)
