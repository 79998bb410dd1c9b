package clinic;

import dev.langchain4j.service.*;

@AiService
interface Bot {
    @SystemMessage(Texts.RULES)
    @Moderate
    String chat(@MemoryId String visit, @UserMessage String text);

    @UserMessage("Who is named in: {{it}}")
    Guest guest(String text);
}
