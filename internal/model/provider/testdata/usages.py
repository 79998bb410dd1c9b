"""Writes usages.jsonl: answers in the forms of the providers, and their costs.

python3 usages.py PRICES > usages.jsonl

PRICES is a list of models with the prices of the providers' price lists. The arithmetic is that of
the price lists, with exact decimal numbers, and shares nothing with the program. A usage only has
kinds of tokens for which the price list of its tier and length states a rate.
"""
import datetime
import json
import random
import sys
from decimal import Decimal

rng = random.Random(29)
models = [m for m in json.load(open(sys.argv[1]), parse_float=Decimal) if m.get("id") and m.get("prices")]
SERVERS = {  # hosts with OpenAI's protocol
    "deepseek": "https://api.deepseek.com", "xai": "https://api.x.ai/v1", "zai": "https://api.z.ai/api/paas/v4", "groq": "https://api.groq.com/openai/v1",
    "moonshotai": "https://api.moonshot.ai/v1", "qwen": "https://dashscope-intl.aliyuncs.com/compatible-mode/v1", "minimax": "https://api.minimax.io/v1",
}


def rates(prices, tier, tokens, day):
    """Returns the rates of a tier for a request that reads a number of tokens."""
    table = prices
    for step in prices.get("long_context", []):
        if tokens > step["above_input_tokens"]:
            table = step
    if tier:
        return table.get(tier)
    table = dict(table)
    for change in prices.get("scheduled", []):
        if change["from"] <= day:
            table = {k: Decimal(v) for k, v in change.items() if k != "from"}
    return table


def cost(rate, n, factor):
    """Returns the price of a usage: every kind of tokens by its rate, for a million tokens."""
    plain = n["input"] - n["cached"] - n["audio"] - sum(n["writes"].values())
    sum_ = plain * rate["input"] + n["cached"] * rate.get("cached_input", 0) + n["audio"] * rate.get("audio_input", 0)
    sum_ += sum(tokens * rate["cache_write_" + life] for life, tokens in n["writes"].items())
    sum_ += (n["output"] - n["reasoning"]) * rate.get("output", 0) + n["reasoning"] * rate.get("reasoning_output", rate.get("output", 0))
    return Decimal(sum_) * Decimal(factor) / 1000000


def tokens(rate, prices, lives, reasons, audio, long):
    """Draws a usage."""
    top = max([s["above_input_tokens"] for s in prices.get("long_context", [])] or [60000])
    n = {"input": top + rng.randrange(1, 200000) if long else rng.randrange(900, min(top, 250000) + 1)}
    n["cached"] = n["input"] // 3 if "cached_input" in rate and rng.random() < 0.6 else 0
    n["writes"] = {life: rng.randrange(1, n["input"] // 8) for life in lives if "cache_write_" + life in rate and rng.random() < 0.7}
    n["audio"] = n["input"] // 5 if audio and "audio_input" in rate and not long else 0
    n["output"] = rng.randrange(1, 20000)
    n["reasoning"] = n["output"] // 2 if reasons and rng.random() < 0.6 else 0
    return n


def embedded(m, n):
    """Returns the usage of an embedding model, which only reads."""
    return n | {"cached": 0, "writes": {}, "audio": 0, "output": 0, "reasoning": 0} if m["kind"] == "embedding" else n


def chat(provider, n, tier):
    usage = {"prompt_tokens": n["input"], "completion_tokens": n["output"], "total_tokens": n["input"] + n["output"]}
    details = {"cached_tokens": n["cached"]}
    if n["writes"]:
        details["cache_write_tokens"] = sum(n["writes"].values())
    if provider == "deepseek":
        usage |= {"prompt_cache_hit_tokens": n["cached"], "prompt_cache_miss_tokens": n["input"] - n["cached"]}
    elif provider == "moonshotai":
        usage["cached_tokens"] = n["cached"]
    else:
        usage["prompt_tokens_details"] = details
    if n["reasoning"]:
        usage["completion_tokens_details"] = {"reasoning_tokens": n["reasoning"]}
        if provider == "xai":  # completion_tokens has no reasoning
            usage["completion_tokens"] -= n["reasoning"]
    body = {"object": "chat.completion", "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Yes."}}], "usage": usage}
    return body | ({"service_tier": tier or "default"} if provider == "openai" else {})


def responses(n, tier):
    usage = {"input_tokens": n["input"], "output_tokens": n["output"], "total_tokens": n["input"] + n["output"],
             "input_tokens_details": {"cached_tokens": n["cached"]}, "output_tokens_details": {"reasoning_tokens": n["reasoning"]}}
    if n["writes"]:
        usage["input_tokens_details"] |= {"cache_write_tokens": sum(n["writes"].values()),
                                          "cache_write_tokens_details": {f"ttl_{life}_tokens": k for life, k in n["writes"].items()}}
    return {"object": "response", "status": "completed", "service_tier": tier or "default", "usage": usage,
            "output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Yes."}]}]}


def messages(n, tier, geo):
    usage = {"input_tokens": n["input"] - n["cached"] - sum(n["writes"].values()), "cache_read_input_tokens": n["cached"], "output_tokens": n["output"],
             "cache_creation_input_tokens": sum(n["writes"].values()), "cache_creation": {f"ephemeral_{life}_input_tokens": k for life, k in n["writes"].items()},
             "service_tier": "batch" if tier == "batch" else "standard", "inference_geo": geo, "output_tokens_details": {"thinking_tokens": n["reasoning"]}}
    if tier == "fast":
        usage["speed"] = "fast"
    return {"type": "message", "role": "assistant", "stop_reason": "end_turn", "content": [{"type": "text", "text": "Yes."}], "usage": usage}


def gemini(n, tier):
    search = n["input"] // 10 if not n["cached"] and not n["audio"] else 0
    usage = {"promptTokenCount": n["input"] - search, "toolUsePromptTokenCount": search, "cachedContentTokenCount": n["cached"],
             "candidatesTokenCount": n["output"] - n["reasoning"], "thoughtsTokenCount": n["reasoning"], "serviceTier": tier or "standard"}
    if n["audio"]:
        heard = n["cached"] // 4  # audio in the cache has the rate of the cache
        usage["promptTokensDetails"] = [{"modality": "TEXT", "tokenCount": n["input"] - n["audio"] - heard}, {"modality": "AUDIO", "tokenCount": n["audio"] + heard}]
        usage["cacheTokensDetails"] = [{"modality": "AUDIO", "tokenCount": heard}, {"modality": "TEXT", "tokenCount": n["cached"] - heard}]
    return {"candidates": [{"index": 0, "finishReason": "STOP", "content": {"role": "model", "parts": [{"text": "Yes."}]}}], "usageMetadata": usage}


def converse(n, tier):
    usage = {"inputTokens": n["input"] - n["cached"] - sum(n["writes"].values()), "outputTokens": n["output"], "cacheReadInputTokens": n["cached"],
             "cacheWriteInputTokens": sum(n["writes"].values()), "cacheDetails": [{"ttl": life, "inputTokens": k} for life, k in n["writes"].items()]}
    return {"output": {"message": {"role": "assistant", "content": [{"text": "Yes."}]}}, "stopReason": "end_turn", "usage": usage, "serviceTier": {"type": tier or "default"}}


def embeddings(n):
    return {"object": "list", "data": [{"object": "embedding", "index": 0, "embedding": [0.5, 0.25]}], "usage": {"prompt_tokens": n["input"], "total_tokens": n["input"]}}


def usages(m):
    """Lists usages of a model: rows without their body and cost, with the tokens and the surcharge."""
    provider, prices = m["provider"], m["prices"]
    tiers = {"openai": ["", "flex", "priority", "batch"], "anthropic": ["", "fast", "batch"], "google": ["", "flex", "priority"], "aws-bedrock": ["", "flex", "priority"]}.get(provider, [""])
    uplifts = prices.get("uplifts", {})
    for tier in tiers:
        for long in [False, True] if "long_context" in prices else [False]:
            row, factor = {"provider": provider, "model": m["id"]}, 1
            day = rng.choice(["2026-11-29", "2026-12-15", "2027-01-20"])
            row["on"] = f"{day}T{rng.randrange(24):02}:{rng.randrange(60):02}:00Z"
            rate = rates(prices, tier, 10**9 if long else 0, day)
            if rate is None or "input" not in rate or m["kind"] == "chat" and "output" not in rate or "off_peak_raw" in prices:
                continue
            reasons = (m.get("reasoning") or {}).get("mode", "none") != "none"
            if provider in ("openai", "azure-openai"):
                row["api"] = rng.choice(["chat", "responses"]) if m["kind"] == "chat" else ""
                n = embedded(m, tokens(rate, prices, ["30m", "12h"] if row["api"] == "responses" else ["30m"], reasons, False, long))
                if provider == "openai" and "regional_processing_uplift_multiplier_eu" in uplifts and rng.random() < 0.4:
                    row["base_url"], factor = "https://eu.api.openai.com/v1", uplifts["regional_processing_uplift_multiplier_eu"]
                row["body"] = embeddings(n) if m["kind"] == "embedding" else responses(n, tier) if row["api"] == "responses" else chat(provider, n, tier)
            elif provider in ("anthropic", "gcp-vertex"):
                n, geo = tokens(rate, prices, ["5m", "1h"], reasons, False, long), "global"
                if provider == "gcp-vertex":
                    row["region"] = rng.choice(["global", "europe-west1"])
                    factor = uplifts.get("regional_endpoint_uplift_multiplier", 1) if row["region"] != "global" else 1
                    geo = "not_available"
                elif "us" in uplifts.get("provider_specific_entry", {}) and rng.random() < 0.5:
                    geo, factor = "us", uplifts["provider_specific_entry"]["us"]
                row["body"] = messages(n, tier, geo)
            elif provider == "google":
                row["provider"] = "google-ai"
                n = embedded(m, tokens(rate, prices, [], reasons, True, long))
                row["body"] = embeddings(n) if m["kind"] == "embedding" else gemini(n, tier)
            elif provider == "aws-bedrock":
                n = tokens(rate, prices, ["5m", "1h"], False, False, long)
                row["body"] = converse(n, tier)
            else:
                n = embedded(m, tokens(rate, prices, [], reasons, False, long))
                if provider in SERVERS:
                    row |= {"provider": "openai", "base_url": SERVERS[provider]}
                row["body"] = embeddings(n) if m["kind"] == "embedding" else chat(provider, n, tier)
            row["kind"], row["dollars"] = m["kind"], format(cost(rate, n, factor).normalize(), "f")
            yield row


rows = []
for provider in ("openai", "azure-openai", "anthropic", "gcp-vertex", "google", "aws-bedrock", "mistral", *SERVERS):
    own = [m for m in models if m["provider"] == provider and (m["kind"] == "chat" or m["kind"] == "embedding" and provider not in ("aws-bedrock", "gcp-vertex", "qwen"))
           and m.get("plain_id_listed", True) and m["status"] != "retired"]
    made = [row for m in own for row in usages(m)]
    rows += rng.sample(made, min(len(made), 24))
for row in rows:
    print(json.dumps(row, separators=(",", ":"), default=float))
