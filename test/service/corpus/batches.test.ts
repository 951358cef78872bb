import { describe, expect, it } from 'vitest'
import { batchesOf } from '../../../src/service/corpus/batches.ts'

const sizes = (...all: number[]) => {
  const batches = [...batchesOf(all.map((size) => ({ size })))]
  return batches.map((batch) => batch.map(({ size }) => size))
}

describe('batchesOf', () => {
  it('groups at most 64 files', () => {
    expect(sizes(...Array.from({ length: 130 }, () => 1)).map(({ length }) => length)).toEqual([64, 64, 2])
  })

  it('groups at most 1 MiB, and a larger file alone', () => {
    const half = 2 ** 19
    expect(sizes(half, half, 1, 5 * half, half, half + 1)).toEqual([
      [half, half],
      [1],
      [5 * half],
      [half],
      [half + 1],
    ])
  })

  it('yields no batch for no files', () => {
    expect(sizes()).toEqual([])
  })
})
