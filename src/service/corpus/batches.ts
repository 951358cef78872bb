import type { FoundFile } from './files.ts'

/** Maximum number of files in a batch. */
const MAX_FILES = 64
/** Maximum size of a batch, in bytes, unless a single file is larger: storing blocks the event loop. */
const MAX_BYTES = 2 ** 20

/** Groups files into batches that are read and stored together, in order. */
export function* batchesOf<File extends Pick<FoundFile, 'size'>>(files: readonly File[]): Generator<File[]> {
  let batch: File[] = []
  let bytes = 0
  for (const file of files) {
    if (batch.length > 0 && (batch.length === MAX_FILES || bytes + file.size > MAX_BYTES)) {
      yield batch
      batch = []
      bytes = 0
    }
    batch.push(file)
    bytes += file.size
  }
  if (batch.length > 0) yield batch
}
