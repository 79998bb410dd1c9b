import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { useMemo } from 'react'
import * as api from './api'
import type { Flow } from './types'

/** The application. It is read again now and then, because a reload of the document may fail. */
export const useApp = () => useQuery({ queryKey: ['app'], queryFn: api.getApp, refetchInterval: 20_000 })
export const useFlows = () => useQuery({ queryKey: ['flows'], queryFn: api.getFlows, staleTime: 60_000 })
export const useFlow = (id: string): Flow | undefined => useFlows().data?.find((f) => f.id === id)

/** The conversations of chat flows, newest first; more pages on request. */
export function useSessions(q: string) {
  const flows = useFlows().data
  const query = useInfiniteQuery({
    queryKey: ['sessions', q],
    queryFn: ({ pageParam }) => api.getSessions(q, pageParam),
    initialPageParam: '',
    getNextPageParam: (last) => last.next || undefined,
    placeholderData: (old) => old,
  })
  const sessions = useMemo(() => {
    const forms = new Set(flows?.filter((f) => pageOfFlow(f) === 'form').map((f) => f.id))
    return query.data?.pages.flatMap((p) => p.sessions ?? []).filter((s) => !s.flow || !forms.has(s.flow))
  }, [query.data, flows])
  return { ...query, sessions }
}

export const useRuns = (flow?: string) => useQuery({ queryKey: ['runs', flow ?? ''], queryFn: () => api.getRuns(flow) })
/** The calls that wait for a role of the user. */
export const useApprovals = () => useQuery({ queryKey: ['approvals'], queryFn: api.getApprovals, refetchInterval: 10_000 })
export const useGraph = (flow: string) => useQuery({ queryKey: ['graph', flow], queryFn: () => api.getGraph(flow), staleTime: 60_000 })
export const useTrace = (run: string | undefined, enabled = true) =>
  useQuery({ queryKey: ['trace', run], queryFn: () => api.getTrace(run!), enabled: enabled && !!run })

/** The page that a flow opens with. */
export const pageOfFlow = (f: Flow): 'chat' | 'form' => (f.interface_type === 'Conversational' && f.endpoints.stream ? 'chat' : 'form')
