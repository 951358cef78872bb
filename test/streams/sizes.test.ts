import { expect, it } from 'vitest'
import { MAX_APPEND_ENTRIES, MAX_COMMIT_BYTES } from '../../src/log/store/contract.ts'
import { MAX_EFFECT_BYTES, MAX_OUTPUTS } from '../../src/streams/sizes.ts'

/** The cursor and the checkpoint of a process: seven positions of up to 7 KB, in a log in memory of 1,000 partitions, and a key. */
const CHECKPOINT_BYTES = 64 * 1024

it('the effects of one call fit into a commit of a log, with the checkpoint of the process', () => {
  expect(MAX_EFFECT_BYTES + CHECKPOINT_BYTES).toBeLessThanOrEqual(MAX_COMMIT_BYTES)
  expect(MAX_OUTPUTS).toBeLessThanOrEqual(MAX_APPEND_ENTRIES)
})
