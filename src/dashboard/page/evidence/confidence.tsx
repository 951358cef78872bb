import type { ReactNode } from 'react'
import { Foreign, visible } from '../parts/foreign.tsx'

const STRENGTH: Readonly<Record<string, number>> = { low: 1, medium: 2, high: 3 }

/** How sure the service is, as bars and a word. */
export function Confidence({ level }: { readonly level: string }): ReactNode {
  const strength = STRENGTH[level] ?? 0
  return (
    <span className={`confidence level-${strength}`} title={`Confidence: ${visible(level)}`}>
      {strength > 0 && (
        <svg viewBox="0 0 13 12" width="13" height="12" aria-hidden="true" focusable="false">
          {[0, 1, 2].map((bar) => (
            <rect
              key={bar}
              className={bar < strength ? 'on' : 'off'}
              x={bar * 5}
              y={8 - bar * 4}
              width="3"
              height={4 + bar * 4}
              rx="1"
            />
          ))}
        </svg>
      )}
      <span className="visually-hidden">Confidence: </span>
      <Foreign>{level}</Foreign>
    </span>
  )
}
