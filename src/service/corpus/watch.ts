import { relative, sep } from 'node:path'
import { watch } from 'chokidar'
import type { FileFilter } from './files.ts'

/** How long changes are collected before the listener is called, in ms. */
const DEBOUNCE = 50
/** Interval of scans when the system refuses to watch the folders, in ms. */
const POLL_INTERVAL = 10_000

/** A running watcher. */
export interface Watcher {
  close(): Promise<void>
}

/** Callbacks of {@link watchFolders}. */
export interface WatchListener {
  /** These files were added, changed or removed. */
  changed(files: readonly { readonly root: string; readonly relative: string }[]): void
  /** Changes may have been missed: scan the folders. */
  lost(): void
}

/**
 * Watches the files of these folders that match the filter. Resolves when every later change will be reported. If the system
 * runs out of watches, `lost` is called at intervals instead.
 */
export async function watchFolders(
  roots: readonly string[],
  filter: FileFilter,
  listener: WatchListener,
): Promise<Watcher> {
  const dirty = new Map<string, { readonly root: string; readonly relative: string }>()
  let debounce: NodeJS.Timeout | undefined
  let poll: NodeJS.Timeout | undefined

  const locate = (path: string) => {
    const root = roots.find((folder) => path === folder || path.startsWith(folder + sep))
    return root === undefined ? undefined : { root, relative: relative(root, path).split(sep).join('/') }
  }

  const watcher = watch([...roots], {
    ignoreInitial: true,
    followSymlinks: false,
    ignored: (path, stats) => {
      const found = locate(path)
      if (stats === undefined || found === undefined || found.relative === '') return false
      if (stats.isDirectory()) return !filter.enter(found.relative)
      return !stats.isFile() || !filter.include(found.relative)
    },
  })
  watcher.on('all', (event, path) => {
    if (event !== 'add' && event !== 'change' && event !== 'unlink') return
    const found = locate(path)
    if (found === undefined) return
    dirty.set(path, found)
    debounce ??= setTimeout(() => {
      debounce = undefined
      const files = [...dirty.values()]
      dirty.clear()
      listener.changed(files)
    }, DEBOUNCE)
  })
  // Usually ENOSPC: too many watches for the system.
  watcher.on('error', () => {
    poll ??= setInterval(() => listener.lost(), POLL_INTERVAL).unref()
  })
  await new Promise<void>((resolve) => watcher.once('ready', resolve))
  return {
    async close() {
      clearTimeout(debounce)
      clearInterval(poll)
      await watcher.close()
    },
  }
}
