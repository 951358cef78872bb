import { describe, expect, it } from 'vitest'
import { batchesOf } from '../../../src/service/corpus/batches.ts'

const sizes = (...all: number[]) => {
  const batches = [...batchesOf(all.map((size) => ({ size })))]
  return batches.map((batch) => batch.map(({ size }) => size))
}

describe('batchesOf', () => {
  it('takes together 64 files at the most', () => {
    expect(sizes(...Array.from({ length: 130 }, () => 1)).map(({ length }) => length)).toEqual([64, 64, 2])
  })

  it('takes together 1 MiB at the most, and what is larger by itself', () => {
    const half = 2 ** 19
    expect(sizes(half, half, 1, 5 * half, half, half + 1)).toEqual([
      [half, half],
      [1],
      [5 * half],
      [half],
      [half + 1],
    ])
  })

  it('makes nothing of nothing', () => {
    expect(sizes()).toEqual([])
  })
})
