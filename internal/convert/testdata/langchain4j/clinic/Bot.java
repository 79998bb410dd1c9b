package clinic;

import dev.langchain4j.service.*;

@AiService
interface Bot {
    @SystemMessage(Texts.RULES)
    @Moderate
    String chat(@MemoryId String visit, @UserMessage String text);

    @UserMessage("Who is ill in: {{it}}")
    Patient patient(String text);
}
